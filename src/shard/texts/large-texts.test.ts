import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import type { Submit } from "#kernel/model/command.ts";
import type { Grant } from "#kernel/model/model.ts";
import type { JobView, PlanInputs } from "#kernel/read/query.ts";
import { digestReferredTo, isReference, referenceTo } from "#kernel/model/text-reference.ts";
import { Rig, replyOf, reserve, submit, type TestNode } from "#shard/testing/host.ts";
import type { NodeOptions } from "#shard/node.ts";
import type { ShardResponse } from "#shard/transport/protocol.ts";

const long = (what: string): string => `${what} `.padEnd(300, "\u6c34");
const short = { inlineLengthMax: 100 } satisfies Partial<NodeOptions>;

async function answerOf<T>(response: Promise<ShardResponse>): Promise<T> {
  const settled = await response;
  ok(settled.kind === "answer", JSON.stringify(settled));
  return settled.answer as T;
}

const jobOf = (spec: string, taskSpec: string): Submit => {
  const given = submit();
  const stages = given.stages.map((stage) => ({
    ...stage,
    ...(stage.tasks && { tasks: { template: stage.tasks.template, tasks: [{ key: "t", spec: taskSpec }] } }),
  }));
  return { ...given, spec, stages };
};

const viewOf = (node: TestNode, job: number): Promise<JobView> => answerOf<JobView>(node.query({ kind: "job", job }));
const stateOf = ({ node }: TestNode) => node.host.shards.get(0)!.state;

describe("long texts are kept in the store", () => {
  test("memory holds a reference, callers get the text", async () => {
    const rig = new Rig();
    const node = await (await rig.node("a", short)).serving();
    const { job } = await node.reply<{ job: number }>(jobOf(long("job"), long("task")));
    const state = stateOf(node);
    ok(isReference(state.job(job).spec) && isReference(state.job(job).stages[0]!.tasks[0]!.plan.spec));
    equal((await viewOf(node, job)).spec, long("job"));
    const [grant] = await node.grants(1);
    equal(grant?.spec, long("task"));
    const watch = node.node.watch({ shard: 0, job }, AbortSignal.timeout(5_000))[Symbol.asyncIterator]();
    const first = watch.next();
    await rig.clock.advance(10);
    const { value } = await first;
    ok(value?.kind === "snapshot");
    equal(value.view.spec, long("job"));
    await watch.return?.();
    node.node.kill();
  });

  test("not while an older node is a member: it may take the shard, and could not read references", async () => {
    const rig = new Rig();
    const other = rig.store.connect();
    const old = { node: "old", address: "mem://old", features: 1, state: "up", facts: {} } as const;
    await other.announce(old, 60_000);
    const node = await (await rig.node("a", short)).serving();
    const before = await node.reply<{ job: number }>(jobOf(long("job"), ""));
    equal(stateOf(node).job(before.job).spec, long("job"));
    equal((await other.cluster()).featureLevel, 1);
    await rig.clock.advance(90_000); // the old node is silent: the level rises
    const after = await node.reply<{ job: number }>(jobOf(long("job"), ""));
    ok(isReference(stateOf(node).job(after.job).spec));
    const taken = await other.acquire(0, "old", { leaseMs: 60_000, features: 1 });
    ok(taken.kind === "refused", JSON.stringify(taken));
    node.node.kill();
  });

  test("they are pinned until after the job's deadline", async () => {
    const rig = new Rig();
    const node = await (await rig.node("a", short)).serving();
    const { job } = await node.reply<{ job: number }>({ ...jobOf(long("job"), ""), deadlineMs: 3_600_000 });
    const { spec } = stateOf(node).job(job);
    const digest = digestReferredTo(spec)!;
    node.node.kill();
    await rig.clock.advance(3_600_000);
    ok(!rig.blobs.evict(digest));
    await rig.clock.advance(25 * 3_600_000);
    ok(rig.blobs.evict(digest));
  });

  test("a new owner reads them back, and an old log without references gives the same answers", async () => {
    for (const before of [short, { inlineLengthMax: 1_000_000 }]) {
      const rig = new Rig();
      const first = await (await rig.node("a", before)).serving();
      const { job } = await first.reply<{ job: number }>(jobOf(long("job"), long("task")));
      first.node.kill();
      const second = await (await rig.node("b", short)).serving();
      ok(isReference(stateOf(second).job(job).spec), "also what was in the log itself");
      equal((await viewOf(second, job)).spec, long("job"));
      equal((await second.grants(1))[0]?.spec, long("task"));
      second.node.kill();
    }
  });

  test("texts of an old snapshot are taken out of memory too", async () => {
    const rig = new Rig();
    const old = { inlineLengthMax: 1_000_000, snapshots: { logBytesMin: 1, stateShare: 0 } };
    const first = await (await rig.node("a", old)).serving();
    const { job } = await first.reply<{ job: number }>(jobOf(long("job"), long("task")));
    for (let i = 0; i < 20; i += 1) {
      await first.reply(submit());
      await rig.clock.advance(1_000);
    }
    first.node.kill();
    const second = await (await rig.node("b", short)).serving();
    ok(isReference(stateOf(second).job(job).spec));
    equal((await viewOf(second, job)).spec, long("job"));
    second.node.kill();
  });

  test("a caller's text that looks like a reference stays a text: it names no blob", async () => {
    const rig = new Rig();
    const node = await (await rig.node("a", short)).serving();
    const { job } = await node.reply<{ job: number }>(jobOf(long("secret"), ""));
    const stolen = stateOf(node).job(job).spec;
    const { job: other } = await node.reply<{ job: number }>({ ...jobOf(stolen, stolen), tenant: "thief" });
    equal((await viewOf(node, other)).spec, stolen);
    const grants = [...(await node.grants(1)), ...(await node.grants(1))];
    ok(grants.some(({ spec }) => spec === stolen) && grants.every(({ spec }) => spec !== long("secret")));
    // A caller's claim that the host has checked it does not help.
    const claimed = { ...jobOf(stolen, ""), tenant: "thief", textsKept: true };
    const { job: third } = await node.reply<{ job: number }>(claimed);
    equal((await viewOf(node, third)).spec, stolen);
    const refused = await node.ask({ kind: "signal", job, stage: 0, signal: { id: "i", name: "n", payload: stolen } });
    equal(refused.kind, "reply");
    node.node.kill();
  });

  test("nothing is stored for work that is refused, or that is known already", async () => {
    const rig = new Rig();
    let writes = 0;
    const blobs = {
      ...rig.blobs,
      write: (...given: Parameters<typeof rig.blobs.write>) => ((writes += 1), rig.blobs.write(...given)),
    };
    const node = await (await rig.node("a", { ...short, blobs })).serving();
    const keyed = { ...jobOf(long("job"), long("task")), requestKey: "k" };
    await node.reply(keyed);
    equal(writes, 2);
    const again = await node.reply<{ created: boolean }>({ ...keyed, spec: long("another") });
    deepEqual([again.created, writes], [false, 2]);
    const tooLong = await node.ask(jobOf("x".repeat(64 * 1024 + 1), ""));
    ok(tooLong.kind === "rejected");
    deepEqual([tooLong.rejection.kind, writes], ["limit", 2]);
    await node.reply({ kind: "set-tenant", tenant: keyed.tenant, weight: 1, runningMax: 0, queuedMax: 1, home: 0 });
    const refused = await node.ask(jobOf(long("more"), long("of it")));
    ok(refused.kind === "rejected");
    deepEqual([refused.rejection.kind, writes], ["queue-full", 2]);
    const wrong = await node.ask({ ...jobOf(long("more"), ""), priority: 1_000 });
    deepEqual([wrong.kind, writes], ["rejected", 2]);
    node.node.kill();
  });

  test("a task whose spec is lost is not granted: it is retried, and does not count against its executor", async () => {
    const rig = new Rig();
    let lost = true;
    const blobs: NodeOptions["blobs"] = {
      ...rig.blobs,
      prompt: undefined as never,
      async *read(digest, ...rest) {
        if (lost) throw new Error("the disk is gone");
        yield* rig.blobs.read(digest, ...rest);
      },
    };
    const node = await (await rig.node("a", { ...short, blobs })).serving();
    const { job } = await node.reply<{ job: number }>(jobOf("", long("task")));
    deepEqual(await node.grants(1), []);
    const [task] = (await viewOf(node, job)).tasks;
    deepEqual([task?.phase, task?.lastFailure?.reason], ["RETRY_PENDING", "input-lost"]);
    match(task?.lastFailure?.message ?? "", /not in the store: the disk is gone/);
    equal(stateOf(node).executor("e1").failures, 0);
    lost = false;
    await rig.clock.advance(60_000);
    equal((await node.grants(1))[0]?.spec, long("task"));
    node.node.kill();
  });

  test("a planner gets the job's spec and the signals in full, and its long plans are stored", async () => {
    const rig = new Rig();
    const node = await (await rig.node("a", short)).serving();
    const plan = { kind: "p", requires: [], leaseMs: 10_000, attemptsMax: 3, deadlineMs: 600_000 };
    const [stage] = submit().stages;
    const { tasks, ...planned } = stage!;
    const { job } = await node.reply<{ job: number }>({
      ...submit(),
      spec: long("job"),
      stages: [{ ...planned, plan }],
    });
    const signal = { id: "i", name: "go", payload: long("signal") };
    await node.reply({ kind: "signal", job, stage: 0, signal });
    const grant = must((await node.grants(1))[0], "grant");
    const about = { task: grant.task, token: grant.token };
    const inputs = await answerOf<PlanInputs>(node.query({ kind: "plan-inputs", ...about, limit: 10 }));
    const shown = inputs.signals.map(({ id, name, payload }) => ({ id, name, payload }));
    deepEqual([inputs.spec, shown], [long("job"), [signal]]);
    const set = { template: tasks!.template, tasks: [{ key: "t", spec: long("planned") }] };
    await node.reply({ kind: "record-plan", executor: "e1", ...about, plan: { kind: "tasks", set } });
    ok(isReference(stateOf(node).job(job).stages[0]!.tasks[0]!.plan.spec));
    ok(isReference(stateOf(node).job(job).stages[0]!.gate!.signals[0]!.payload));
    equal((await node.grants(1))[0]?.spec, long("planned"));
    node.node.kill();
  });

  test("several commands in one request get whole texts as well", async () => {
    const rig = new Rig();
    const node = await (await rig.node("a", short)).serving();
    const commands = [jobOf(long("one"), long("task one")), reserve({ nonce: "many" })];
    const response = await node.node.request({ kind: "commands", shard: 0, commands: [commands[0]!] });
    ok(response.kind === "said");
    const granted = await node.node.request({ kind: "commands", shard: 0, commands: [commands[1]!] });
    ok(granted.kind === "said");
    equal(replyOf<{ grants: readonly Grant[] }>(granted.said[0]!).grants[0]?.spec, long("task one"));
    node.node.kill();
  });
});

test("a text is a reference only with a digest in it", () => {
  const digest = `${"a".repeat(64)}/1`;
  equal(digestReferredTo(referenceTo(digest)), digest);
  equal(digestReferredTo("@blob:anything else"), undefined);
  equal(digestReferredTo(digest), undefined);
});

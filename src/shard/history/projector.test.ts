import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import type { History } from "#journal/journal.ts";
import { commit, joining, Rig, submit, type TestNode } from "#shard/testing/host.ts";

async function finishOne(node: TestNode): Promise<number> {
  const { job } = await node.reply<{ job: number }>(submit());
  await node.reply(commit(must((await node.grants())[0], "grant")));
  return job;
}

const isInMemory = ({ node }: TestNode, job: number): boolean =>
  must(node.host.shards.get(0), "shard").state.jobs.has(job);

describe("history", () => {
  test("is written after the log, and then the job leaves memory", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const job = await finishOne(a);
    const { history } = rig.store.connect();
    await rig.clock.advance(500);
    const written = must(await history.job(0, job), "history");
    equal(written.job.phase, "SUCCEEDED");
    deepEqual(
      written.tasks.map(({ key, phase, result }) => ({ key, phase, result })),
      [{ key: "k0", phase: "SUCCEEDED", result: "done" }],
    );
    equal(written.attempts.length, 1);
    ok(isInMemory(a, job), "for a while, for those who wait for it");
    await rig.clock.advance(11_000);
    ok(!isInMemory(a, job));
    const gone = await a.query({ kind: "job", job });
    equal(gone.kind === "rejected" && gone.rejection.kind, "job-unknown");
    equal((await history.cursor(0)) <= (await rig.store.connect().tail(0)).seq, true);
  });

  test("has a tracked job from its submission on, seen at most a minute ago, and how it was submitted", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const tags = [{ name: "repo", value: "mill" }];
    const { job } = await a.reply<{ job: number }>(submit({ tracked: true, tags, series: "ci", spec: "all of it" }));
    await a.reply(submit());
    const { history } = rig.store.connect();
    const read = async () => must(await history.job(0, job), "history");
    await rig.clock.advance(500);
    const { job: row, submission = "" } = await read();
    deepEqual([row.phase, row.endedAtMs, row.tags, row.number], ["RUNNING", 0, ["repo=mill"], 1]);
    const { spec, stages, series } = JSON.parse(submission) as Record<string, unknown>;
    deepEqual([spec, (stages as unknown[]).length, series], ["all of it", 1, "ci"]);
    equal(await history.job(0, 2), undefined, "others have a row when they have ended");
    for (let i = 0; i < 3; i += 1) {
      await rig.clock.advance(60_000);
      const { nowMs } = must(a.node.host.shards.get(0), "shard").state;
      ok(nowMs - (await read()).job.seenAtMs < 60_000);
    }
    a.node.kill();
    const b = await (await rig.node("b")).serving();
    const takenMs = (await read()).job.seenAtMs;
    await rig.clock.advance(60_000);
    ok((await read()).job.seenAtMs > takenMs, "the next owner goes on");
    await b.reply({ kind: "cancel", job, reason: "enough", hard: true });
    await rig.clock.advance(90_000);
    const ended = await read();
    deepEqual([ended.job.phase, ended.job.seenAtMs, ended.stages.length], ["CANCELLED", ended.job.endedAtMs, 1]);
    b.node.kill();
  });

  test("never gets ahead of what is durable", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    await a.reply(submit());
    const grant = must((await a.grants())[0], "grant");
    a.journal.fail("append", "late");
    void a.ask(commit(grant));
    await rig.clock.advance(2_000);
    const { history } = rig.store.connect();
    equal(await history.job(0, 1), undefined);
    a.journal.deliver();
    await rig.clock.advance(500);
    equal((await history.job(0, 1))?.job.phase, "SUCCEEDED");
  });

  test("a job stays in memory until its history is written, however long that takes", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const { history } = a.journal.asJournal;
    const record = history.record.bind(history);
    Object.assign(history, { record: () => Promise.reject(new Fault("unavailable", "record history")) });
    const job = await finishOne(a);
    await rig.clock.advance(60_000);
    ok(isInMemory(a, job));
    Object.assign(history, { record });
    await rig.clock.advance(60_000);
    ok(!isInMemory(a, job));
  });

  test("is completed by the next owner when the last one died before writing it", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const job = await finishOne(a);
    a.node.kill();
    equal(await rig.store.connect().history.job(0, job), undefined);
    const b = await (await rig.node("a")).serving();
    await rig.clock.advance(500);
    equal((await rig.store.connect().history.job(0, job))?.job.phase, "SUCCEEDED");
    await rig.clock.advance(12_000);
    ok(!isInMemory(b, job));
  });

  test("when it falls too far behind, new work is refused until it has caught up", async () => {
    const rig = new Rig();
    const a = await rig.node("a", { projector: { lagMsMax: 3_000 } });
    await a.serving();
    let isDown = true;
    const inner = a.journal.asJournal.history;
    const record = inner.record.bind(inner);
    const flaky: History["record"] = async (...args) => {
      if (isDown) throw new Fault("unavailable", "record history");
      return record(...args);
    };
    Object.assign(inner, { record: flaky });
    const job = await finishOne(a);
    await rig.clock.advance(2_000);
    equal((await a.ask(submit({ mergeKey: "m" }))).kind, "reply");
    await rig.clock.advance(2_000);
    const refused = await a.ask(submit());
    equal(refused.kind === "rejected" && refused.rejection.kind === "shard-full" && refused.rejection.what, "history");
    equal((await a.ask(joining("m"))).kind, "reply", "who only joins brings no work");
    ok((a.node.status().shards[0]?.historyLagMs ?? 0) > 3_000);
    ok(isInMemory(a, job), "it stays until it is written");
    isDown = false;
    await rig.clock.advance(6_000);
    equal((await a.ask(submit())).kind, "reply");
  });

  test("switched off: nothing is written, and ended jobs are still forgotten", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { projector: { history: false } })).serving();
    const job = await finishOne(a);
    await rig.clock.advance(20_000);
    ok(!isInMemory(a, job));
    equal(await rig.store.connect().history.job(0, job), undefined);
    ok((await rig.store.connect().history.cursor(0)) > 0, "the cursor moves, so that the log can be trimmed");
  });

  test("a job that may still have running work is not forgotten", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const { job } = await a.reply<{ job: number }>(submit());
    await a.grants();
    await a.reply({ kind: "cancel", job, reason: "no longer wanted" });
    await rig.clock.advance(3_000);
    ok(isInMemory(a, job));
  });
});

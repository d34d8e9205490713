import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import type { TaskTemplate } from "#kernel/model/model.ts";
import { plainTemplate } from "#kernel/testing/template.ts";
import type { JobRow } from "#base/history-rows.ts";
import { memoryHistory } from "#journal/memory/memory-history.ts";
import { createClient, shardOf, type Order } from "./client.ts";
import { testCluster } from "#shard/testing/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { Random } from "#base/random.ts";

const template: TaskTemplate = { ...plainTemplate, kind: "test", leaseMs: 10_000, retryOn: "any", graceMs: 1_000 };

const order = (name: string, more: Partial<Order> = {}): Order => ({
  shardKey: name,
  tenant: "t",
  door: "test",
  name,
  payloadHash: name,
  priority: 0,
  spec: "{}",
  deadlineMs: 3_600_000,
  stages: [
    {
      name: "only",
      needs: [],
      after: "success",
      failFast: false,
      mayFail: false,
      parallelMax: 0,
      tasks: { template, tasks: [{ key: "1", spec: "{}" }] },
    },
  ],
  ...more,
});

describe("the work client", () => {
  test("submits to the shard of the key, and finds the job again by its id alone", async () => {
    const { client } = await testCluster(new ManualClock(), 4);
    const { jobId, created } = await client.submit(order("alpha"));
    ok(created);
    ok(jobId.startsWith(`j${shardOf("alpha", 4)}-`), jobId);
    const { view, live } = await client.job(jobId);
    deepEqual([view.name, view.phase, live], ["alpha", "RUNNING", true]);
    equal((await client.why(jobId))[0]?.because.kind, "no-executor");
  });

  test("the same request key gives the same job, and a different request under it is refused", async () => {
    const { client } = await testCluster(new ManualClock());
    const first = await client.submit(order("a", { requestKey: "k" }));
    const second = await client.submit(order("a", { requestKey: "k" }));
    deepEqual([second.jobId, second.created], [first.jobId, false]);
    await rejects(client.submit(order("a", { requestKey: "k", payloadHash: "other" })), (error) => {
      ok(isRejected(error, "key-reused"));
      equal(
        error.message,
        `submit: key-reused (the key "k" already belongs to job ${first.jobId}, which was a different request)`,
      );
      return true;
    });
  });

  test("joins a live job, whichever request finds it, and starts none", async () => {
    const { client, shards } = await testCluster(new ManualClock());
    const joining = { shardKey: "a", tenant: "t", door: "test", payloadHash: "a", priority: 7, mergeKey: "m" };
    equal(await client.join(joining), undefined);
    equal(shards[0]?.state.jobs.size, 0);
    const { jobId } = await client.submit(order("a", { mergeKey: "m", subscriber: "first" }));
    deepEqual(await client.join({ ...joining, subscriber: "second", requestKey: "k" }), {
      jobId,
      created: false,
      merged: true,
    });
    const { view } = await client.job(jobId);
    deepEqual([view.subscribers, view.priority], [2, 7]);
    await client.cancel(jobId, "enough");
    equal(await client.join(joining), undefined);
    equal((await client.join({ ...joining, requestKey: "k" }))?.jobId, jobId);
    await rejects(client.join({ ...joining, requestKey: "k", payloadHash: "b" }), (e) => isRejected(e, "key-reused"));
    await rejects(client.join({ ...joining, priority: 101 }), (e) => isRejected(e, "limit"));
  });

  test("takes a task from grant to result", async () => {
    const { client } = await testCluster(new ManualClock());
    const { jobId } = await client.submit(order("a"));
    const [grant] = await client.reserve(0, { executor: "e", offers: [], count: 5 });
    ok(grant);
    deepEqual([grant.jobId, grant.key], [jobId, "1"]);
    const claim = { executor: "e", taskId: grant.taskId, token: grant.token };
    equal((await client.start(claim)).leaseMs, 10_000);
    await client.report(claim, [{ step: 1, name: "compile", status: "started" }]);
    equal((await client.task(grant.taskId)).steps[0]?.name, "compile");
    const { held, lost } = await client.renew(0, "e", [claim, { taskId: "t0-zz", token: 9 }]);
    deepEqual([held.map(({ taskId }) => taskId), lost.map(({ taskId }) => taskId)], [[grant.taskId], ["t0-zz"]]);
    equal(await client.commit(claim, { payload: "done", digests: [] }), true);
    equal((await client.job(jobId)).view.phase, "SUCCEEDED");
    await rejects(client.fail({ ...claim, token: 99 }, "user-failure", "late"), (e) => isRejected(e));
  });

  test("malformed ids are refused before any shard is asked", async () => {
    const { client, shards } = await testCluster(new ManualClock());
    await rejects(client.job("t0-1"), (e) => isFault(e, "invalid"));
    await rejects(client.cancel("nonsense", ""), (e) => isFault(e, "invalid"));
    await rejects(client.job("j0-1"), (e) => isRejected(e, "job-unknown"));
    equal(shards[0]?.asked.length, 1);
  });

  test("a stage is signalled by its name; a wrong name is answered with the right ones", async () => {
    const { client } = await testCluster(new ManualClock());
    const { jobId } = await client.submit(order("a"));
    await rejects(client.signal(jobId, "onyl", { name: "approve", payload: "" }), /stages=only/);
  });

  test("watches a job until it has ended", async () => {
    const clock = new ManualClock();
    const { client } = await testCluster(clock);
    const { jobId } = await client.submit(order("a"));
    const seen: string[] = [];
    const watching = (async () => {
      for await (const message of client.watch(jobId, new AbortController().signal))
        seen.push(message.kind === "snapshot" ? message.view.phase : message.kind);
    })();
    await clock.advance(100);
    equal(await client.cancel(jobId, "enough"), "CANCELLING");
    await clock.advance(100);
    await watching;
    deepEqual(seen, ["RUNNING", "CANCELLED", "end"]);
  });
});

describe("listing jobs", () => {
  const row = (job: number, submittedAtMs: number): JobRow => ({
    shard: 0,
    job,
    tenant: "t",
    door: "test",
    name: `old${job}`,
    phase: "SUCCEEDED",
    reason: "",
    priority: 0,
    submittedAtMs,
    endedAtMs: 20 - submittedAtMs,
    seenAtMs: 20 - submittedAtMs,
    tags: [],
    series: "",
    number: 0,
  });

  async function listing() {
    const clock = new ManualClock();
    const { router, directory, shards, client: plain } = await testCluster(clock, 3);
    const history = memoryHistory(() => 1);
    const jobs = [row(900, 9), row(800, 8), row(700, 7)];
    const rows = { jobs, stages: [], tasks: [], attempts: [], steps: [] };
    await history.record(0, { epoch: 1, throughSeq: 1 }, rows);
    const client = createClient({ router, directory: { ...directory, history }, random: new Random(1) });
    for (let i = 0; i < 5; i += 1) {
      await plain.submit(order(`job${i}`));
      await clock.advance(10);
    }
    return { client, shards, clock };
  }

  test("goes through all shards and through history, newest first, page by page", async () => {
    const { client } = await listing();
    const names: string[] = [];
    const sizes: number[] = [];
    let cursor: string | undefined;
    do {
      const page = await client.jobs({ limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      names.push(...page.jobs.map(({ name }) => name));
      sizes.push(page.jobs.length);
      cursor = page.cursor;
    } while (cursor !== undefined);
    deepEqual(names, ["job4", "job3", "job2", "job1", "job0", "old900", "old800", "old700"]);
    deepEqual(sizes, [3, 3, 2]);
  });

  test("filters by phase, and says which shards did not answer", async () => {
    const { client, shards, clock } = await listing();
    const cancelled = (await client.jobs({ limit: 1 })).jobs[0];
    ok(cancelled);
    await client.cancel(cancelled.jobId, "");
    const running = await client.jobs({ limit: 4, phase: "RUNNING" });
    equal(running.jobs.length, 4);
    ok(running.jobs.every(({ phase }) => phase === "RUNNING"));

    const [, second] = shards;
    ok(second);
    second.down = true;
    const asking = client.jobs({ limit: 100 }, { deadlineMs: 1_000 });
    await clock.advance(2_000);
    const { jobs, unreachable } = await asking;
    deepEqual(unreachable, [1]);
    ok(jobs.length >= 4);
  });

  test("a cursor that this code did not make is refused", async () => {
    const { client } = await listing();
    const spelled = (place: unknown): string => Buffer.from(JSON.stringify(place)).toString("base64url");
    const places = [
      null,
      7,
      {},
      { after: 7, before: {} },
      { after: "x", before: {} },
      { after: "x", before: { 0: "1" } },
    ];
    for (const cursor of ["%%%", "", ...places.map(spelled)])
      await rejects(client.jobs({ limit: 1, cursor }), (e) => isFault(e, "invalid"));
  });
});

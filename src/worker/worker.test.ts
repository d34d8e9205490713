import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { Fault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { bytes } from "#blobs/testing/exercise.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { StageSpec, TaskTemplate } from "#kernel/model/model.ts";
import { plainTemplate } from "#kernel/testing/template.ts";
import { testCluster } from "#shard/testing/client.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { Order } from "#shard/client/client.ts";
import { ReadyDesk, type ReadyShard } from "#shard/watch/ready-desk.ts";
import type { Planners, Resume, RunContext, RunOutcome, Runners } from "./runner.ts";
import type { WorkSource, WorkSources } from "#worker/visits/sources.ts";
import { createWorker } from "./create-worker.ts";
import type { WorkerOptions } from "./worker-options.ts";

const template: TaskTemplate = {
  ...plainTemplate,
  kind: "sleep",
  leaseMs: 3_000,
  retryOn: "any",
  backoffMs: 100,
  backoffMsMax: 1_000,
  graceMs: 6_000,
};

const stage = (specs: readonly string[], change: Partial<TaskTemplate> = {}): StageSpec => ({
  name: "s",
  needs: [],
  after: "success",
  failFast: false,
  mayFail: false,
  parallelMax: 0,
  tasks: { template: { ...template, ...change }, tasks: specs.map((spec, i) => ({ key: String(i), spec })) },
});

const order = (stages: readonly StageSpec[], name = "job"): Order => ({
  shardKey: name,
  tenant: "t",
  door: "test",
  name,
  payloadHash: "",
  priority: 0,
  spec: "the spec",
  deadlineMs: 3_600_000,
  stages,
});

async function scene({
  shards = 1,
  options = {},
  runners = {},
  planners = {},
  hears = false,
  wayMs = 0,
  more = [],
}: {
  /** Further sources of work. */
  more?: readonly (readonly [string, WorkSource])[];
  shards?: number;
  /** Whether it gets hints about work instead of polling every shard. */
  hears?: boolean;
  /** How long a request takes to arrive. */
  wayMs?: number;
  options?: Partial<WorkerOptions>;
  runners?: Runners;
  planners?: Planners;
} = {}) {
  const clock = new ManualClock();
  const cluster = await testCluster(clock, shards);
  const blobs = createMemoryBlobs({ clock, sizeBytesMax: 1_000_000 });
  const log: string[] = [];
  const ran: string[] = [];
  let now = 0;
  let most = 0;
  const sleep = async (spec: string, signal: AbortSignal): Promise<RunOutcome> => {
    ran.push(spec);
    now += 1;
    most = Math.max(most, now);
    try {
      await clock.sleep(Number(spec), signal);
      return { kind: "done", payload: `slept ${spec}` };
    } finally {
      now -= 1;
    }
  };
  const desk = new ReadyDesk({
    clock,
    shards: () => cluster.shards.map(({ state }) => ({ shard: state.shard, phase: "serving", state })),
  });
  const hear: WorkSource["ready"] = async (room, waitMs, signal) => {
    if (wayMs > 0) await clock.sleep(wayMs, signal);
    return await desk.wait(room, waitMs, signal);
  };
  const sources: WorkSources = () => new Map([["node", { ready: hear }], ...more]);
  const start = (executor = "w", resumes: readonly Resume[] = []) => {
    const abort = new AbortController();
    const held: Granted[] = [];
    const worker = createWorker({
      client: cluster.client,
      blobs,
      clock,
      random: new Random(1),
      executor,
      offers: [],
      shards,
      sources,
      resumes,
      runners: {
        sleep: ({ task, signal }) => {
          held.push(task);
          return sleep(task.spec, signal);
        },
        ...runners,
      },
      planners,
      options: { slots: 2, pollMs: 1_000, ...(hears && { heldShardsMax: 0 }), ...options },
      log: (line) => log.push(line),
    });
    const running = worker.run(abort.signal);
    return { worker, running, held: () => held, crash: () => abort.abort(new Error("kill -9")) };
  };
  const phase = async (jobId: string) => (await cluster.client.job(jobId)).view.phase;
  return { clock, blobs, log, ran, start, phase, desk, most: () => most, running: () => now, ...cluster };
}

describe("a worker", () => {
  test("runs what it is given, never more at once than it has slots, and commits", async () => {
    const { client, clock, start, phase, ran, most } = await scene();
    start();
    const { jobId } = await client.submit(order([stage(["100", "100", "100", "100", "100"])]));
    await clock.advance(1_000);
    equal(await phase(jobId), "SUCCEEDED");
    deepEqual([ran.length, most()], [5, 2]);
    equal((await client.job(jobId)).view.tasks[0]?.result?.payload, "slept 100");
  });

  for (const hears of [false, true])
    test(`takes work from every shard ${hears ? "that nodes name" : "by a request held at each"}`, async () => {
      const { client, clock, start, phase } = await scene({ shards: 5, options: { pollersMax: 2 }, hears });
      start();
      const jobs = await Promise.all(
        ["a", "b", "c", "d", "e", "f", "g", "h"].map((name) => client.submit(order([stage(["10"])], name))),
      );
      ok(new Set(jobs.map(({ jobId }) => jobId.split("-")[0])).size > 2);
      await clock.advance(10_000);
      for (const { jobId } of jobs) equal(await phase(jobId), "SUCCEEDED");
    });

  test("with many shards it hears soon where there is work, and visits no other shard", async () => {
    const { client, clock, start, phase, shards, desk } = await scene({
      shards: 40,
      options: { pollersMax: 2 },
      hears: true,
    });
    start();
    await clock.advance(1_000);
    const asked = shards.map((shard) => shard.asked.length);
    const { jobId } = await client.submit(order([stage(["10"])]));
    const at = shards.findIndex(({ state }) => state.jobs.size > 0);
    desk.unclaimed(at, { requires: [], planning: false, ready: 1 });
    await clock.advance(30);
    equal(await phase(jobId), "SUCCEEDED");
    await clock.advance(1_000);
    deepEqual(
      shards.flatMap((shard, i) => (shard.asked.length > (asked[i] ?? 0) ? [i] : [])),
      [at],
    );
  });

  test("a long queue in one shard does not keep it from work in another (K10)", async () => {
    const { client, clock, start, phase, shards, desk } = await scene({
      shards: 40,
      options: { pollersMax: 2, slots: 1 },
      hears: true,
      wayMs: 5,
    });
    start();
    await clock.advance(1_000);
    const long = await client.submit(order([stage(Array.from({ length: 200 }, () => "100"))], "long"));
    const at = shards.findIndex(({ state }) => state.jobs.size > 0);
    desk.unclaimed(at, { requires: [], planning: false, ready: 200 });
    await clock.advance(1_000);
    const short = await client.submit(order([stage(["10"])], "short"));
    equal(shards.filter(({ state }) => state.jobs.size > 0).length, 2);
    await clock.advance(3_000);
    equal(await phase(short.jobId), "SUCCEEDED");
    equal(await phase(long.jobId), "RUNNING");
  });

  test("on hold it is told about no work; resumed, it is told again", async () => {
    const { client, clock, start, phase, shards, desk } = await scene({
      shards: 40,
      options: { pollersMax: 2 },
      hears: true,
    });
    const { worker } = start();
    await clock.advance(1_000);
    await worker.hold();
    const { jobId } = await client.submit(order([stage(["10"])]));
    const at = shards.findIndex(({ state }) => state.jobs.size > 0);
    desk.unclaimed(at, { requires: [], planning: false, ready: 1 });
    await clock.advance(5_000);
    equal(await phase(jobId), "RUNNING");
    equal((await client.job(jobId)).view.tasks[0]?.attempts, 0);
    worker.resume();
    await clock.advance(100);
    equal(await phase(jobId), "SUCCEEDED");
  });

  test("an aborted or unheld request for work does no harm", async () => {
    const answers: (() => Promise<readonly ReadyShard[]>)[] = [
      async () => [],
      () => Promise.reject(new DOMException("taken back", "AbortError")),
      () => Promise.reject(new Fault("unavailable", "call", { why: "closed" })),
    ];
    let asked = 0;
    const strange: WorkSource = {
      ready: () => answers[(asked += 1) % answers.length]?.() ?? Promise.resolve([]),
    };
    const { client, clock, start, phase, shards, desk } = await scene({
      shards: 40,
      options: { pollersMax: 2, slots: 1 },
      hears: true,
      more: [["strange", strange]],
    });
    start();
    await clock.advance(1_000);
    for (let i = 0; i < 10; i += 1) {
      const { jobId } = await client.submit(order([stage(["10"])], `job ${i}`));
      const at = shards.findIndex(({ state }) => state.ready.size > 0);
      desk.unclaimed(at, { requires: [], planning: false, ready: 1 });
      await clock.advance(50);
      equal(await phase(jobId), "SUCCEEDED");
    }
    ok(asked < 100, `${asked} requests in 1.5 s`);
  });

  test("with more work than slots, it continues where it heard about work", async () => {
    const { client, clock, start, phase, most } = await scene({ shards: 40, options: { pollersMax: 2 }, hears: true });
    const jobs = await Promise.all(
      Array.from({ length: 30 }, (_, i) => client.submit(order([stage(["100", "100"])], `job ${i}`))),
    );
    start();
    await clock.advance(30 * 110 + 200);
    for (const { jobId } of jobs) equal(await phase(jobId), "SUCCEEDED");
    equal(most(), 2);
  });

  test("keeps a long attempt alive far beyond its lease, with one renewal for all claims", async () => {
    const { client, clock, start, phase, shards } = await scene();
    start();
    const { jobId } = await client.submit(order([stage(["30000", "30000"])]));
    await clock.advance(31_000);
    equal(await phase(jobId), "SUCCEEDED");
    equal((await client.job(jobId)).view.tasks[0]?.attempts, 1);
    const renewals = shards[0]?.asked.filter((r) => r.kind === "command" && r.command.kind === "renew") ?? [];
    ok(renewals.length >= 29 && renewals.length <= 33, `${renewals.length} renewals in 30 s with a lease of 3 s`);
  });

  test("continues what an earlier process began, and drops what is no longer claimed", async () => {
    const { client, clock, start, phase, ran } = await scene();
    const first = start();
    const { jobId } = await client.submit(order([stage(["5000", "5000"])]));
    await clock.advance(1_000);
    const dropped: string[] = [];
    const resumes = first.held().map((granted) => ({ granted, drop: () => void dropped.push(granted.key) }));
    first.crash();
    const [mine, other] = resumes;
    ok(mine && other && resumes.length === 2);
    await client.fail({ executor: "w", taskId: other.granted.taskId, token: other.granted.token }, "cancelled", "gone");
    start("w", resumes);
    await clock.advance(100);
    deepEqual(dropped, [other.granted.key], "its claim is gone");
    await clock.advance(12_000);
    equal(await phase(jobId), "SUCCEEDED");
    const attempts = (await client.job(jobId)).view.tasks.map((task) => task.attempts);
    deepEqual(
      attempts.toSorted((a, b) => a - b),
      [1, 2],
    );
    equal(ran.length, 4, "two, one that was resumed, and one that was begun again");
    equal(dropped.length, 2, "called when nothing is left to report");
  });

  test("continues through an outage shorter than lease and grace", async () => {
    const { client, clock, start, phase, shards, ran } = await scene();
    start();
    const { jobId } = await client.submit(order([stage(["10000"])]));
    await clock.advance(1_000);
    const [shard] = shards;
    ok(shard);
    shard.down = true;
    await clock.advance(2_500); // the lease has expired by now, but no owner is there to see it
    shard.down = false;
    await clock.advance(12_000);
    equal(await phase(jobId), "SUCCEEDED");
    deepEqual(ran, ["10000"]);
  });

  test("a result that was ready during a long outage is committed when the shard is back", async () => {
    const { client, clock, start, phase, shards, ran } = await scene({ options: { slots: 1 } });
    start();
    const { jobId } = await client.submit(order([stage(["5000"])]));
    await clock.advance(1_000);
    const [shard] = shards;
    ok(shard);
    shard.down = true;
    await clock.advance(40_000); // many leases, and far beyond the grace
    shard.comeBack();
    await clock.advance(3_000);
    equal(await phase(jobId), "SUCCEEDED");
    deepEqual(ran, ["5000"]);
  });

  test("a claim granted after a wait longer than its lease is still run", async () => {
    const { client, clock, start, phase, ran } = await scene({ options: { pollMs: 10_000 } });
    const begin = client.start.bind(client);
    client.start = async (...asked) => {
      await clock.sleep(20);
      return await begin(...asked);
    };
    start();
    await clock.advance(9_000);
    const { jobId } = await client.submit(order([stage(["100"], { effects: "outside", graceMs: 0, attemptsMax: 1 })]));
    await clock.advance(1_000);
    deepEqual([await phase(jobId), ran], ["SUCCEEDED", ["100"]]);
  });

  test("a runner that prepares starts while its claim is being confirmed, and no other runner does", async () => {
    const seen: string[] = [];
    const runner = async ({ started }: RunContext): Promise<RunOutcome> => {
      seen.push("prepared");
      await started?.();
      seen.push("ran");
      return { kind: "done", payload: "" };
    };
    const { client, clock, start, phase } = await scene({
      runners: { early: Object.assign(runner, { prepares: true }), late: async (context) => await runner(context) },
      options: { pollMs: 10_000 },
    });
    const begin = client.start.bind(client);
    client.start = async (...asked) => {
      seen.push("asked");
      await clock.sleep(20);
      seen.push("started");
      return await begin(...asked);
    };
    start();
    for (const kind of ["early", "late"]) {
      await clock.advance(1_000); // so that the request for work was held for long
      const { jobId } = await client.submit(order([stage([""], { kind })], kind));
      await clock.advance(1_000);
      equal(await phase(jobId), "SUCCEEDED");
    }
    deepEqual(seen, ["asked", "prepared", "started", "ran", "asked", "started", "prepared", "ran"]);
  });

  test("a task prepared for a claim that is not held is neither run nor reported", async () => {
    const seen: string[] = [];
    const runner = async ({ started, signal }: RunContext): Promise<RunOutcome> => {
      seen.push("prepared");
      await started?.().catch((error: unknown) => {
        seen.push(`stopped: ${signal.aborted}`);
        throw error;
      });
      return { kind: "done", payload: "ran" };
    };
    const { client, clock, start, log, phase } = await scene({
      runners: { early: Object.assign(runner, { prepares: true }) },
      options: { pollMs: 10_000 },
    });
    const begin = client.start.bind(client);
    let refusals = 0;
    client.start = async (...asked) => {
      refusals += 1;
      if (refusals === 1) throw new Fault("stale", "start", { why: "somebody else has it" });
      return await begin(...asked);
    };
    start();
    await clock.advance(1_000);
    const { jobId } = await client.submit(order([stage([""], { kind: "early" })]));
    await clock.advance(1_000);
    deepEqual(seen, ["prepared", "stopped: true"]);
    ok(log.some((line) => line.includes("not started")));
    await clock.advance(20_000);
    equal(await phase(jobId), "SUCCEEDED", "its lease expired, and it was tried again");
  });

  test("W1: stops after lease and grace without an answer; at the lease with outside effects", async () => {
    for (const [effects, aliveAtMs, deadAtMs] of [
      ["pure", 8_000, 10_500],
      ["outside", 2_000, 3_500],
    ] as const) {
      const { client, clock, start, shards, running } = await scene();
      start();
      await client.submit(order([stage(["60000"], { effects, graceMs: effects === "pure" ? 6_000 : 0 })]));
      await clock.advance(100);
      const [shard] = shards;
      ok(shard);
      shard.down = true;
      await clock.advance(aliveAtMs - 100);
      equal(running(), 1, `${effects} runs at ${aliveAtMs}`);
      await clock.advance(deadAtMs - aliveAtMs);
      equal(running(), 0, `${effects} is dead at ${deadAtMs}`);
    }
  });

  test("a cancelled attempt is stopped, then reported", async () => {
    const { client, clock, start, phase, running } = await scene();
    start();
    const { jobId } = await client.submit(order([stage(["60000"])]));
    await clock.advance(500);
    equal(running(), 1);
    await client.cancel(jobId, "no longer needed");
    equal(await phase(jobId), "CANCELLING");
    await clock.advance(1_500);
    equal(running(), 0);
    equal(await phase(jobId), "CANCELLED");
  });

  test("uploads outputs before it commits", async () => {
    const output = bytes("the output");
    const digest = sha256Digest(output);
    const { client, clock, start, blobs, shards } = await scene({
      runners: { make: async () => ({ kind: "done", payload: "made", outputs: [{ digest, bytes: output }] }) },
    });
    start();
    await client.submit(order([stage(["x"], { kind: "make" })]));
    await clock.advance(100);
    const commit = shards[0]?.asked.find((r) => r.kind === "command" && r.command.kind === "commit");
    ok(commit?.kind === "command" && commit.command.kind === "commit");
    deepEqual(commit.command.result.digests, [digest]);
    deepEqual(await blobs.missing([digest]), []);
  });

  test("fails with the runner's reason, and with a typed one if the runner throws", async () => {
    const { client, clock, start, phase } = await scene({
      runners: {
        bad: async () => ({ kind: "failed", reason: "out-of-memory", message: "too big" }),
        broken: () => Promise.reject(new Error("a bug")),
      },
    });
    start();
    const bad = await client.submit(order([stage(["x"], { kind: "bad", attemptsMax: 1 })], "bad"));
    const broken = await client.submit(order([stage(["x"], { kind: "broken", attemptsMax: 1 })], "broken"));
    const unknown = await client.submit(order([stage(["x"], { kind: "unknown", attemptsMax: 1 })], "unknown"));
    await clock.advance(5_000);
    const failureOf = async (jobId: string) => (await client.job(jobId)).view.tasks[0]?.lastFailure;
    equal(await phase(bad.jobId), "FAILED");
    deepEqual(await failureOf(bad.jobId), { reason: "out-of-memory", message: "too big" });
    deepEqual(await failureOf(broken.jobId), { reason: "executor-lost", message: "a bug" });
    equal((await failureOf(unknown.jobId))?.message, "this worker has no runner for unknown");
  });

  test("stops an attempt that exceeds its time limit", async () => {
    const { client, clock, start, phase, running } = await scene();
    start();
    const { jobId } = await client.submit(order([stage(["60000"], { attemptMs: 5_000, attemptsMax: 1 })]));
    await clock.advance(6_000);
    deepEqual([running(), await phase(jobId)], [0, "FAILED"]);
    equal((await client.job(jobId)).view.tasks[0]?.lastFailure?.reason, "timed-out");
  });

  const planners: Planners = {
    double: ({ spec, stage: name }) => ({
      kind: "tasks",
      set: { template, tasks: [{ key: `${name}:${spec}`, spec: "5" }] },
    }),
  };
  const planned: StageSpec = {
    name: "later",
    needs: [],
    after: "success",
    failFast: false,
    mayFail: false,
    parallelMax: 0,
    plan: { kind: "double", requires: [], leaseMs: 30_000, attemptsMax: 3, deadlineMs: 60_000 },
  };

  test("plans stages with the planner of their kind", async () => {
    const { client, clock, start, phase } = await scene({ planners });
    start();
    const { jobId } = await client.submit(order([planned]));
    await clock.advance(500);
    equal(await phase(jobId), "SUCCEEDED");
    ok((await client.job(jobId)).view.tasks.some(({ key }) => key === "later:the spec"));
  });

  test("plans while its only slot runs a long task, polling shards or listening for hints", async () => {
    for (const hears of [false, true]) {
      const { client, clock, start, phase, ran, shards } = await scene({ planners, hears, options: { slots: 1 } });
      const { worker } = start();
      const long = await client.submit(order([stage([String(30 * 60_000)])], "long"));
      await clock.advance(1_000);
      const { jobId } = await client.submit(order([planned], "short"));
      await clock.advance(1_000);
      const { tasks } = (await client.job(jobId)).view;
      deepEqual(
        tasks.map(({ key, phase: of }) => `${key} ${of}`),
        ["plan SUCCEEDED", "later:the spec READY"],
        "it is planned, and its task waits for the slot",
      );
      equal(worker.status().running, 1);
      // A second worker's slot goes on with it.
      start("v");
      await clock.advance(6_000);
      deepEqual([await phase(jobId), await phase(long.jobId)], ["SUCCEEDED", "RUNNING"]);
      deepEqual(ran, [String(30 * 60_000), "5"]);
      ok(must(shards[0], "shard").events.some((event) => event.kind === "claimed" && event.executor === "w/plans"));
    }
  });

  test("a planner that is stuck is replaced, a bounded number of times", async () => {
    let calls = 0;
    const stuck: Planners = {
      double: async (inputs, context) => {
        calls += 1;
        if (calls === 1) await new Promise(() => {});
        return await (planners["double"] as NonNullable<Planners[string]>)(inputs, context);
      },
    };
    const patient = { ...planned, plan: { ...must(planned.plan, "plan"), deadlineMs: 3_600_000 } };
    const { client, clock, start, phase, log } = await scene({
      planners: stuck,
      hears: true,
      options: { planners: 1 },
    });
    const { worker } = start();
    const { jobId } = await client.submit(order([patient]));
    await clock.advance(60_000);
    deepEqual([await phase(jobId), worker.status().planning], ["RUNNING", 1]);
    await clock.advance(5 * 60_000);
    deepEqual([await phase(jobId), calls, worker.status().planning], ["SUCCEEDED", 2, 0]);
    ok(log.some((line) => line.includes("it is abandoned")));
  });

  test("a plan that does not fit into the shard is retried soon, and no attempt is counted", async () => {
    const { client, clock, start, phase, shards } = await scene({ planners });
    const { state } = must(shards[0], "the only shard");
    const { jobId } = await client.submit(order([planned]));
    state.memory.bytes += 2 * state.memory.bytesMax;
    start();
    await clock.advance(500);
    const { lastFailure } = (await client.job(jobId)).view.tasks[0] ?? {};
    equal(lastFailure?.reason, "preempted");
    equal(state.executors.get("w/plans")?.failures, 0);
    state.memory.bytes -= 2 * state.memory.bytesMax;
    await clock.advance(5_000);
    equal(await phase(jobId), "SUCCEEDED");
  });

  test("reports steps in order and before the end", async () => {
    const { client, clock, start } = await scene({
      runners: {
        steps: async ({ report }) => {
          for (const step of [1, 2, 3]) report({ step, name: `step ${step}`, status: "started" });
          return { kind: "done", payload: "" };
        },
      },
    });
    start();
    const { jobId } = await client.submit(order([stage(["x"], { kind: "steps" })]));
    await clock.advance(1_000);
    deepEqual(
      (await client.job(jobId)).view.tasks[0]?.steps.map(({ step }) => step),
      [1, 2, 3],
    );
  });

  test("on hold it finishes what runs and takes nothing; resumed, it continues", async () => {
    const { client, clock, start, phase, ran } = await scene();
    const { worker } = start();
    const first = await client.submit(order([stage(["2000"])]));
    await clock.advance(500);
    await worker.hold();
    const second = await client.submit(order([stage(["100"])], "other"));
    await clock.advance(20_000);
    deepEqual(await Promise.all([phase(first.jobId), phase(second.jobId)]), ["SUCCEEDED", "RUNNING"]);
    deepEqual(worker.status(), { running: 0, planning: 0, telling: 0, slots: 2, draining: true });
    worker.resume();
    await clock.advance(1_000);
    equal(await phase(second.jobId), "SUCCEEDED");
    deepEqual(ran, ["2000", "100"]);
  });

  test("on hold it can be asked to release what runs: other workers run it", async () => {
    const { client, clock, start, phase, ran } = await scene();
    const { worker } = start();
    const { jobId } = await client.submit(order([stage(["5000"])]));
    await clock.advance(500);
    await worker.hold();
    worker.giveBack();
    await clock.advance(100);
    equal(worker.status().running, 0);
    start("another");
    await clock.advance(10_000);
    equal(await phase(jobId), "SUCCEEDED");
    deepEqual(ran, ["5000", "5000"]);
  });

  test("drained, it finishes what it can, releases the rest, and takes nothing new", async () => {
    const { client, clock, start, phase, running } = await scene();
    const { worker, running: run } = start();
    const short = await client.submit(order([stage(["1000"])], "short"));
    const long = await client.submit(order([stage(["60000"])], "long"));
    await clock.advance(100);
    equal(running(), 2);
    const late = await client.submit(order([stage(["10"])], "late"));
    const draining = worker.drain(5_000);
    await clock.advance(6_000);
    await Promise.all([draining, run]);
    equal(await phase(short.jobId), "SUCCEEDED");
    equal((await client.job(long.jobId)).view.tasks[0]?.lastFailure?.reason, "preempted");
    equal((await client.job(late.jobId)).view.tasks[0]?.attempts ?? 0, 0);
  });

  test("restarted under its old name, it releases at once what its earlier process held", async () => {
    const { client, clock, start, phase, ran } = await scene();
    const first = start("same");
    const { jobId } = await client.submit(order([stage(["60000", "60000"], { leaseMs: 60_000, attemptMs: 90_000 })]));
    await clock.advance(100);
    first.crash();
    await clock.advance(1_000);
    deepEqual([ran.length, await phase(jobId)], [2, "RUNNING"]);
    start("same");
    await clock.advance(1_000); // much less than the lease
    equal(ran.length, 4);
    await clock.advance(61_000);
    equal(await phase(jobId), "SUCCEEDED");
  });

  test("killed, it reports nothing more, and the task is retried when its lease has expired", async () => {
    const { client, clock, start, phase, ran, shards } = await scene();
    const first = start("one");
    const { jobId } = await client.submit(order([stage(["5000"])]));
    await clock.advance(100);
    first.crash();
    await first.running;
    const said = shards[0]?.asked.length;
    await clock.advance(2_000);
    equal(shards[0]?.asked.length, said);
    start("two");
    await clock.advance(10_000);
    deepEqual([ran.length, await phase(jobId)], [2, "SUCCEEDED"]);
  });

  test("claims beyond the free slots are released at no cost", async () => {
    const { client, clock, start, shards, phase } = await scene({ shards: 4, options: { slots: 1 } });
    start();
    await clock.advance(50); // all four shards hold a request for work now
    const jobs = await Promise.all(
      ["a", "b", "c", "d", "e", "f"].map((name) => client.submit(order([stage(["500"])], name))),
    );
    await clock.advance(8_000);
    for (const { jobId } of jobs) equal(await phase(jobId), "SUCCEEDED");
    const released = shards
      .flatMap(({ asked }) => asked)
      .filter((r) => r.kind === "command" && r.command.kind === "release");
    ok(released.length > 0);
    for (const { jobId } of jobs)
      equal((await client.job(jobId)).view.tasks[0]?.attempts, 1, "a release costs no attempt");
  });
});

describe("short tasks", () => {
  const asked = (shards: Awaited<ReturnType<typeof scene>>["shards"], kind: string) =>
    shards.flatMap(({ asked: all }) => all).filter((one) => one.kind === "command" && one.command.kind === kind).length;

  for (const hears of [false, true])
    test(`are taken ahead of free slots, many with one request (${hears ? "hints" : "held"})`, async () => {
      const { client, clock, start, phase, shards, desk, most, ran } = await scene({ hears });
      start();
      const { jobId } = await client.submit(order([stage(Array.from({ length: 400 }, () => "1"))]));
      if (hears) desk.unclaimed(0, { requires: [], planning: false, ready: 400 });
      await clock.advance(1_000);
      equal(await phase(jobId), "SUCCEEDED");
      deepEqual([ran.length, most()], [400, 2], "each once, and never more than there are slots");
      ok(asked(shards, "reserve") < 60, `${asked(shards, "reserve")} requests for 400 tasks on 2 slots`);
      equal(asked(shards, "start"), 0, "claims that came soon need no more words");
      equal(asked(shards, "release"), 0);
    });

  test("do not keep the worker from other shards (K10)", async () => {
    const { client, clock, start, phase } = await scene({ shards: 4 });
    start();
    const names = ["a", "b", "c", "d", "e", "f"];
    for (const name of names) await client.submit(order([stage(Array.from({ length: 300 }, () => "1"))], name));
    await clock.advance(100);
    const small = await Promise.all(
      ["p", "q", "r", "s", "t", "u", "v"].map((name) =>
        client.submit({ ...order([stage(["1"])], name), tenant: "small" }),
      ),
    );
    ok(new Set(small.map(({ jobId }) => jobId.split("-")[0])).size > 2);
    await clock.advance(1_000);
    for (const { jobId } of small) equal(await phase(jobId), "SUCCEEDED");
  });

  test("that turn out long are given back to others", async () => {
    const { client, clock, start, phase, shards } = await scene({ options: { slots: 1 } });
    start();
    const short = await client.submit(order([stage(Array.from({ length: 50 }, () => "1"))], "short"));
    await clock.advance(500);
    equal(await phase(short.jobId), "SUCCEEDED");
    await client.submit(order([stage(Array.from({ length: 30 }, () => "5000"))], "long"));
    await clock.advance(1_000);
    const held = shards.reduce((sum, { state }) => sum + state.claims, 0);
    equal(held, 1, "one runs, and the others can be taken by any worker");
  });
});

describe("what an attempt leaves", () => {
  const left = (text: string) => ({
    payload: text,
    outputs: [{ digest: sha256Digest(bytes(text)), bytes: bytes(text) }],
  });

  test("a checkpoint is durable when it is acknowledged, and the next attempt gets the last one", async () => {
    const seen: (string | undefined)[] = [];
    const order1: string[] = [];
    const runners: Runners = {
      sleep: async ({ task, checkpoint }) => {
        seen.push(task.checkpoint?.payload);
        if (task.attempt > 1) return { kind: "done", payload: "went on" };
        const first = checkpoint?.(left("one")).then(() => order1.push("one"));
        const second = checkpoint?.(left("two")).then(() => order1.push("two"));
        await Promise.all([first, second, checkpoint?.(left("three"))]);
        return { kind: "failed", reason: "preempted", message: "away", left: left("log") };
      },
    };
    const { client, clock, start, phase, blobs } = await scene({ runners });
    start();
    const { jobId } = await client.submit(order([stage(["1"])]));
    await clock.advance(5_000);
    equal(await phase(jobId), "SUCCEEDED");
    deepEqual(seen, [undefined, "three"]);
    deepEqual(order1, ["one", "two"]);
    deepEqual(await blobs.missing([sha256Digest(bytes("log")), sha256Digest(bytes("three"))]), []);
  });

  test("drained, started work with outside effects goes on elsewhere at no cost to its attempts", async () => {
    const attempts: string[] = [];
    const runners: Runners = {
      sleep: async ({ task, signal, checkpoint, clock }): Promise<RunOutcome> => {
        attempts.push(`${task.attempt} ${task.checkpoint?.payload}`);
        if (task.checkpoint) return { kind: "done", payload: "went on" };
        await checkpoint?.({ payload: "begun" });
        await clock.sleep(100_000, signal).catch(() => {});
        return { kind: "given-back", checkpoint: { payload: "half" } };
      },
    };
    const { client, clock, start, phase } = await scene({ runners });
    const first = start("first");
    const { jobId } = await client.submit(order([stage(["1"], { effects: "outside", graceMs: 0, attemptsMax: 1 })]));
    await clock.advance(500);
    const drained = first.worker.drain(0);
    await clock.advance(2_000);
    await drained;
    start("second");
    await clock.advance(3_000);
    equal(await phase(jobId), "SUCCEEDED");
    deepEqual(attempts, ["1 undefined", "1 half"]);
  });

  test("cancelled, it has the time that its task says, and what it leaves is kept", async () => {
    const runners: Runners = {
      sleep: async ({ signal, clock }): Promise<RunOutcome> => {
        await clock.sleep(100_000, signal).catch(() => {});
        await clock.sleep(60_000);
        return { kind: "failed", reason: "cancelled", message: "", left: left("cleaned up") };
      },
    };
    const { client, clock, start, phase } = await scene({ runners });
    start();
    const { jobId } = await client.submit(order([stage(["1"], { stopMs: 120_000 })]));
    await clock.advance(500);
    await client.cancel(jobId, "enough");
    await clock.advance(30_000);
    equal(await phase(jobId), "CANCELLING");
    await clock.advance(40_000);
    equal(await phase(jobId), "CANCELLED");
    const { view } = await client.job(jobId);
    deepEqual(view.tasks[0]?.lastFailure?.result?.payload, "cleaned up");
  });

  test("that a step began or ended is reported until the shard has it, however long that takes", async () => {
    const runners: Runners = {
      sleep: async ({ report, clock, signal }): Promise<RunOutcome> => {
        report({ step: 1, name: "one", status: "started" });
        report({ step: 1, name: "one", status: "succeeded" });
        await clock.sleep(4_000, signal);
        return { kind: "done", payload: "" };
      },
    };
    const { client, clock, start } = await scene({ runners });
    let refusals = 3;
    const reports = client.report.bind(client);
    Object.assign(client, {
      report: async (...asked: Parameters<typeof reports>): Promise<void> => {
        refusals -= 1;
        if (refusals >= 0) throw new Fault("unavailable", "report", {});
        await reports(...asked);
      },
    });
    start();
    const { jobId } = await client.submit(order([stage(["1"])]));
    await clock.advance(6_000);
    const { view } = await client.job(jobId);
    deepEqual(view.tasks[0]?.steps, [{ step: 1, name: "one", status: "succeeded" }]);
  });
});

/**
 * A node that keeps a pool dies at every step, another takes over at once: no job is lost, no pod and no Secret
 * stays, the ceiling holds. The pods are simulated; the API server is the double, over HTTP.
 */
import { equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { until } from "#testing/until.ts";
import { fasterClock, PoolRig } from "#testing/kubernetes/pool-rig.ts";

const wait = { limitMs: 60_000, everyMs: 5 };
const jobs = 6;
const max = 3;

async function isQuiet(rig: PoolRig): Promise<void> {
  await until("all jobs have run", () => rig.done >= jobs, wait);
  await until("no pod and no Secret is left", () => rig.api.pods.size + rig.api.secrets.size === 0, wait);
  ok(rig.api.podsMost <= max, `${rig.api.podsMost} pods at once`);
}

/** The changes that a pool makes without any trouble. */
async function changes(): Promise<number> {
  await using rig = await PoolRig.open({ max, clock: fasterClock(30) });
  rig.keeper("first");
  rig.submit(jobs);
  await isQuiet(rig);
  return rig.api.calls.filter((call) => /^(create|delete) /.test(call)).length;
}

test("a node that dies at any step leaves no pod and no Secret behind", { timeout: 240_000 }, async () => {
  const steps = await changes();
  ok(steps >= 3 * jobs - 3, `${steps} steps`);
  for (const isDone of [true, false])
    for (let step = 1; step <= steps; step += 1) {
      await using rig = await PoolRig.open({ max, clock: fasterClock(30) });
      const first = rig.keeper("first");
      let seen = 0;
      const die = (verb: string): boolean => {
        if (verb !== "create" && verb !== "delete") return false;
        seen += 1;
        if (seen !== step) return false;
        rig.keeper("second");
        void rig.crash(first);
        return true;
      };
      // The change is made and its answer lost; or it was never made.
      if (isDone) rig.api.after = (verb) => (die(verb) ? "drop" : "answer");
      else
        rig.api.before = (verb) => {
          if (die(verb)) throw new Error("the connection broke");
        };
      rig.submit(jobs);
      await isQuiet(rig).catch((error: unknown) => {
        throw new Error(`at step ${step}, ${isDone ? "done" : "not done"}`, { cause: error });
      });
    }
});

test("two nodes that both keep the pool stay below its ceiling and end with nothing", { timeout: 60_000 }, async () => {
  await using rig = await PoolRig.open({ max, clock: fasterClock(30) });
  rig.keeper("first");
  rig.keeper("second");
  rig.submit(jobs);
  await isQuiet(rig);
});

test(
  "watches that end, versions that are compacted and lists of many pages change nothing",
  { timeout: 60_000 },
  async () => {
    await using rig = await PoolRig.open({ max, clock: fasterClock(30), pageMax: 1, kept: 3 });
    rig.keeper("first");
    rig.submit(jobs);
    await until("some have run", () => rig.done >= 2, wait);
    rig.api.compact();
    rig.api.dropWatches();
    await isQuiet(rig);
    equal(rig.done, jobs);
  },
);

test("spares are kept, and no more", { timeout: 60_000 }, async () => {
  await using rig = await PoolRig.open({ max, warm: 2, clock: fasterClock(30) });
  rig.keeper("first");
  await until("two wait for work", () => rig.api.pods.size === 2, wait);
  rig.submit(jobs);
  await until("all jobs have run", () => rig.done >= jobs, wait);
  await until("two wait again", () => rig.api.pods.size === 2 && rig.nodes.running === 2, wait);
});

test("a thousand jobs at once: how long they wait", { timeout: 120_000 }, async (t) => {
  await using rig = await PoolRig.open({ max: 1_000, jobMs: 50 });
  rig.keeper("first");
  await until("it looks", () => rig.api.calls.length > 0, wait);
  rig.submit(1_000);
  await until("all jobs have run", () => rig.done >= 1_000, { limitMs: 90_000, everyMs: 20 });
  const waited = rig.waitedMs.toSorted((a, b) => a - b);
  const at = (part: number): number =>
    Math.round(waited[Math.min(waited.length - 1, Math.floor(part * waited.length))] ?? 0);
  t.diagnostic(`queued to running: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms; ${rig.api.podsEver} pods for 1,000 jobs`);
  await until("none is left", () => rig.api.pods.size + rig.api.secrets.size === 0, { limitMs: 60_000, everyMs: 20 });
  ok(rig.api.podsEver <= 1_100, `${rig.api.podsEver} pods`);
});

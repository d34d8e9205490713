// Each golden/<case>.job.yaml has what is submitted for it (<case>.order.json) and what people are shown while it
// runs on the real kernel with a pretended shell (<case>.lines.txt). UPDATE_GOLDEN=1 rewrites them.
import { deepEqual, equal } from "node:assert/strict";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { Random } from "#base/random.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { testCluster } from "#shard/testing/client.ts";
import { BoundedOutput } from "#worker/printed/output.ts";
import type { ProcessRunner } from "#worker/process.ts";
import { createWorker } from "#worker/create-worker.ts";
import { planLabel, planSubmit, taskLabel } from "./plan.ts";
import { ShellJob } from "./request.ts";
import { shellPlanners, shellRunners } from "./run.ts";
import { lastLineOf } from "./result.ts";
import { JobFollower, viewJob } from "#door/view.ts";

const folder = join(import.meta.dirname, "golden");
const wishes = { tenant: "default", unique: "unique" };

function golden(path: string, got: string): void {
  if (process.env["UPDATE_GOLDEN"]) writeFileSync(path, got);
  equal(got, readFileSync(path, "utf8"), `${basename(path)} (UPDATE_GOLDEN=1 npm test writes it anew)`);
}

for (const file of globSync("*.job.yaml", { cwd: folder }).toSorted()) {
  const name = file.replace(".job.yaml", "");
  const job = ShellJob.parse(parse(readFileSync(join(folder, file), "utf8")));

  test(`${name}: what is submitted`, () => {
    golden(join(folder, `${name}.order.json`), `${JSON.stringify(planSubmit(job, wishes), null, 2)}\n`);
  });

  test(`${name}: what people are shown`, async () => {
    golden(join(folder, `${name}.lines.txt`), `${(await play(name, job)).join("\n")}\n`);
  });
}

/** Knows two programs: `false`, and one that repeats its command line. Takes 100 ms. */
const pretended =
  (clock: ManualClock): ProcessRunner =>
  async ({ command, signal }) => {
    await clock.sleep(100, signal);
    const output = new BoundedOutput(1_000);
    output.add(Buffer.from(`ran ${command.join(" ")}\n`));
    return { exitCode: command.includes("false") ? 1 : 0, killedBy: undefined, output };
  };

async function play(name: string, job: ShellJob): Promise<readonly string[]> {
  const clock = new ManualClock(0);
  const { client, shards } = await testCluster(clock);
  const worker = createWorker({
    client,
    blobs: createMemoryBlobs({ clock, sizeBytesMax: 1_000_000 }),
    clock,
    random: new Random(1),
    executor: "worker",
    offers: [taskLabel, planLabel],
    shards: 1,
    sources: () => new Map(),
    runners: shellRunners({
      scratch: async () => ({ path: "/", [Symbol.asyncDispose]: async () => {} }),
      processes: pretended(clock),
      env: {},
      printedBytesMax: 1_000_000,
    }),
    planners: shellPlanners,
    options: { slots: 4 },
  });
  const { jobId } = await client.submit(planSubmit(job, wishes));
  const follower = new JobFollower(jobId, (_door, payload) => lastLineOf(payload));
  const lines = [
    ...follower.lines({ kind: "snapshot", stamp: { epoch: 1, seq: 0 }, view: (await client.job(jobId)).view }),
  ];
  const stop = new AbortController();
  const running = worker.run(stop.signal);
  for (const [signal, payload] of name === "rejected" ? [["reject", "not on a Friday"]] : [["approve", ""]]) {
    await until(clock, async () => (await client.job(jobId)).view.phase !== "RUNNING" || (await isWaiting()));
    if (await isWaiting()) await client.signal(jobId, "ask", { name: signal ?? "", payload: payload ?? "", id: "1" });
  }
  await until(clock, async () => (await client.job(jobId)).view.endedAtMs !== undefined);
  stop.abort(new Error("done"));
  await running;
  const events = shards[0]?.events ?? [];
  lines.push(...follower.lines({ kind: "events", stamp: { epoch: 1, seq: 1 }, events }), follower.progress, "");
  const { view } = await client.job(jobId);
  deepEqual(view.phase, follower.phase);
  return [...lines, ...viewJob(jobId, { ...view, endedAtMs: view.submittedAtMs + 1_000 }, 0)];

  async function isWaiting(): Promise<boolean> {
    return (await client.job(jobId)).view.stages.some(({ waitsForSignals }) => waitsForSignals.length > 0);
  }
}

async function until(clock: ManualClock, holds: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 1_000 && !(await holds()); turn += 1) await clock.advance(50);
}

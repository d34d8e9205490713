/**
 * One stage of a million tasks through a whole node: planned behind a gate, run by the node's own worker, its results
 * read by the stage after it as one manifest.
 */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openDiskStore } from "#blobs/disk/open.ts";
import { systemClock } from "#door/system-clock.ts";
import { showJob, signalJob, submitJob } from "#api/jobs.ts";
import { decodeRecord } from "#journal/record.ts";
import { decodeEvents, encodeEvents } from "#shard/codec/codec.ts";
import { manifestEntries } from "#shard/manifest/read.ts";
import { processMb } from "#bench/measure.ts";
import { NodeProcess } from "#bench/node-process.ts";
import type { Report } from "#bench/report.ts";
import type { Suite } from "#bench/suite.ts";

const pollMs = 250;
/** On a busy machine a million tasks may take long; a stage that makes no progress is given up. */
const idleMsMax = 60_000;

export const array: Suite = {
  name: "array",
  about: "one stage of a million tasks that do nothing: planned, run and completed by a node with SQLite",
  notMeasured: ["what tasks do", "workers elsewhere", "PostgreSQL", "memory of a live task: `bench kernel` has it"],
  async run(report, { smoke }) {
    await using node = await NodeProcess.start(["worker.slots=16"]);
    await through(node, 2_000); // on code that is not compiled yet
    const measured = await through(node, smoke ? 5_000 : 1_000_000);
    await node.stop();
    await checkResults(join(node.data, "blobs"), measured);
    show(report, measured);
  },
};

type Measured = {
  readonly count: number;
  /** Of the manifest of its results. */
  readonly digest: string;
  readonly planBytes: number;
  readonly seconds: number;
  readonly cpuUs: number;
  /** Of the whole process: before the plan, at most while tasks ran, and when the job had ended. */
  readonly mb: { readonly before: number; readonly most: number; readonly after: number };
};

async function through(node: NodeProcess, count: number): Promise<Measured> {
  const { job } = await node.api(submitJob, { body: { document: documentOf(count) } });
  await follow(node, job, ({ stages }) => (stages[0]?.waitsForSignals.length ?? 0) > 0);
  const [mbBefore, cpuBefore, startedMono] = [processMb(node.pid), node.cpuUs(), performance.now()];
  await node.api(signalJob, { params: { job }, body: { stage: "parts", name: "approve" } });
  const planBytes = await planBytesOf(node, count);
  const most = await follow(node, job, ({ phase }) => phase !== "RUNNING");
  const seconds = (performance.now() - startedMono) / 1_000;
  const cpuUs = node.cpuUs() - cpuBefore;
  const mb = { before: mbBefore, most, after: processMb(node.pid) };
  const { phase, stages, tasks } = await node.api(showJob, { params: { job } });
  const digest = stages[0]?.manifest ?? "";
  const taken = tasks.find(({ stage }) => stage === "take")?.result ?? "";
  if (phase !== "SUCCEEDED" || digest === "" || !taken.includes(digest))
    throw new Error(`the job ended as ${phase}; its consumer was given ${taken} of ${digest}`);
  return { count, digest, planBytes, seconds, cpuUs, mb };
}

const documentOf = (count: number) => ({
  name: `array of ${count}`,
  stages: [
    { name: "parts", gate: {}, sleep: "0ms", array: count },
    { name: "take", needs: ["parts"], run: 'echo "$MILLRACE_MANIFESTS"' },
  ],
});

/** The size of the logged plan. Read at once: the log is trimmed behind snapshots. */
async function planBytesOf({ data }: NodeProcess, count: number): Promise<number> {
  for (let tries = 0; tries < 500; tries += 1) {
    using db = new DatabaseSync(join(data, "journal", "journal.db"), { readOnly: true });
    const rows = db.prepare("select seq, record from log_0 order by seq desc limit 200").all();
    for (const { seq, record } of rows as { seq: number; record: Uint8Array }[])
      for (const event of decodeEvents(decodeRecord(record, { kind: "batch", shard: 0, seq, link: undefined }).payload))
        if (event.kind === "stage-planned" && JSON.stringify(event).includes(`"count":${count}`))
          return encodeEvents([event]).length;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error("the plan is not in the log");
}

type Shown = Awaited<ReturnType<typeof showing>>;
const showing = (node: NodeProcess, job: string) => node.api(showJob, { params: { job } });

/** Looks at the job until it is so far. Returns how much memory the node used at most. */
async function follow(node: NodeProcess, job: string, isSoFar: (shown: Shown) => boolean): Promise<number> {
  let mbMost = 0;
  let done = -1;
  for (let movedMono = performance.now(); performance.now() - movedMono < idleMsMax;) {
    const shown = await showing(node, job);
    mbMost = Math.max(mbMost, processMb(node.pid));
    if (isSoFar(shown)) return mbMost;
    const now = shown.stages.reduce((sum, stage) => sum + stage.done, 0);
    if (now !== done) movedMono = performance.now();
    done = now;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw new Error(`no task has ended for ${idleMsMax / 1_000} s, after ${done}`);
}

/** Reads the whole manifest: every index is in it once, with a result. */
async function checkResults(folder: string, { digest, count }: Measured): Promise<void> {
  const store = await openDiskStore(folder, { clock: systemClock, sizeBytesMax: 64 * 2 ** 30 });
  let index = 1;
  try {
    for await (const { key, phase, payload } of manifestEntries(store.all, digest)) {
      if (key !== String(index) || phase !== "SUCCEEDED" || payload === undefined)
        throw new Error(`task ${key} stands where ${index} should, as ${phase}`);
      index += 1;
    }
  } finally {
    await store.close();
  }
  if (index !== count + 1) throw new Error(`the manifest lists ${index - 1} results of ${count}`);
}

function show(report: Report, { count, planBytes, seconds, cpuUs, mb }: Measured): void {
  report.say(
    `an array stage of ${count} tasks: planned in ${planBytes} bytes of log, run and completed in ` +
      `${seconds.toFixed(1)} s, ${Math.round(count / seconds)} tasks/s, ${(cpuUs / count).toFixed(0)} us of the ` +
      `node's CPU a task; its manifest lists ${count} results`,
  );
  report.say(
    `  memory of the process: ${mb.before.toFixed(0)} MB before, ${mb.most.toFixed(0)} MB at most, ` +
      `${mb.after.toFixed(0)} MB at the end`,
  );
  report.figure("array_plan_bytes", planBytes);
  report.figure("array_seconds", seconds);
  report.figure("array_tasks_per_s", Math.round(count / seconds));
  report.figure("array_cpu_us_a_task", cpuUs / count);
  report.figure("array_process_mb_more", mb.most - mb.before);
  report.target({ what: "bytes of log of an array's plan", atMost: 1_024, got: planBytes });
}

/** Runs on the real kernel, with the planners of the door and jobs that are only pretended. */
import { Random } from "#base/random.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { testCluster } from "#shard/testing/client.ts";
import type { Runners } from "#worker/runner.ts";
import { createWorker } from "#worker/create-worker.ts";
import { cellOf } from "#doors/ci/cell-task.ts";
import { kinds, planLabel, planRun, taskLabel } from "#doors/ci/plan.ts";
import type { CellResult } from "#doors/ci/result.ts";
import { ciPlanners, readCellTask } from "#doors/ci/runs/planners.ts";
import { readRun, type RunRecord, type StoredRun } from "#doors/ci/runs/record.ts";
import { type RunView, viewRun } from "#doors/ci/view.ts";

export const wishes = { tenant: "default", shardKey: "repository" };

export const stored = (run: RunRecord): StoredRun => ({
  about: { title: "w", workflow: "w", path: "w.yml", repository: "", event: "push", ref: "", sha: "", actor: "" },
  files: { value: [run.file, ...(run.called ?? [])] },
  rest: { value: { github: run.github, vars: run.vars, inputs: run.inputs } },
});

export const keptRun = (text: string, called?: Called) => ({
  stored: stored(record(text, called)),
  digest: `${"0".repeat(64)}/1`,
});
export const plan = (text: string, called?: Called) => planRun(record(text, called), keptRun(text, called), wishes);

/** Called files by their paths. */
type Called = Readonly<Record<string, string>>;

export const record = (text: string, called: Called = {}): RunRecord => ({
  file: { path: "w.yml", text },
  called: Object.entries(called).map(([path, of]) => ({ path, text: of })),
  github: { ref: "refs/heads/main" },
  vars: {},
  inputs: {},
});

export const jobs = (lines: Readonly<Record<string, string>>): string =>
  `on: push\njobs:\n${Object.entries(lines)
    .map(([id, line]) => `  ${id}:\n    runs-on: x\n    steps: [{ run: echo }]\n    ${line}`)
    .join("\n")}\n`;

/** What a cell comes to, by its name; outputs are made of `name=value` words. */
type Ends = Readonly<Record<string, string>>;

const pretended = (ends: Ends, ran: string[]): Runners => ({
  [kinds.job]: async (context) => {
    const task = await readCellTask(context.task.spec, context.blobs);
    const { cell, fails } = cellOf(task, await readRun(context.blobs, task.run));
    ran.push(cell.name);
    const [result = "success", ...words] = (ends[cell.name] ?? "success").split(" ");
    const outputs = Object.fromEntries(words.map((word) => word.split("=")));
    if (result === "failure" && fails) return { kind: "failed", reason: "user-failure", message: "it failed" };
    const payload = { result, outputs, isFailureAllowed: cell.isFailureAllowed } as CellResult;
    return { kind: "done", payload: JSON.stringify(payload) };
  },
});

export async function play(
  text: string,
  ends: Ends = {},
  called?: Called,
): Promise<{ readonly run: RunView; readonly ran: readonly string[] }> {
  const clock = new ManualClock(0);
  const { client } = await testCluster(clock);
  const ran: string[] = [];
  const worker = createWorker({
    client,
    blobs: createMemoryBlobs({ clock, sizeBytesMax: 1_000_000 }),
    clock,
    random: new Random(1),
    executor: "worker",
    offers: [taskLabel, planLabel, "runner=x"],
    shards: 1,
    sources: () => new Map(),
    runners: pretended(ends, ran),
    planners: ciPlanners({ client }),
    options: { slots: 1 },
  });
  const { jobId } = await client.submit(plan(text, called));
  const stop = new AbortController();
  const running = worker.run(stop.signal);
  const hasEnded = async (): Promise<boolean> => viewRun((await client.job(jobId)).view).status === "completed";
  for (let turn = 0; turn < 1_000 && !(await hasEnded()); turn += 1) await clock.advance(50);
  stop.abort(new Error("done"));
  await running;
  return { run: viewRun((await client.job(jobId)).view), ran };
}

export const told = ({ jobs: all }: RunView): readonly string[] =>
  all.map(({ id, conclusion }) => `${id} ${conclusion}`);

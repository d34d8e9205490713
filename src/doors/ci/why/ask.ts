/** "Why is it queued, why was it skipped, what failed?", for a run, a job or a step, within the caller's tenant. */
import type { z } from "zod";
import { Fault } from "#base/fault.ts";
import type { DoorPorts } from "#door/ports.ts";
import { formatTask, parseJob } from "#base/ids.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { ExecutorView, JobView, StageView, Why } from "#kernel/read/query.ts";
import { takes } from "#kernel/ready/lanes.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { conclusionStage, decidingJob, planStage } from "#doors/ci/plan.ts";
import { readCellResult } from "#doors/ci/result.ts";
import { type JobDetails, noDetails } from "#doors/ci/details.ts";
import { findRun } from "#doors/ci/runs/look.ts";
import { findStored, readRun, type RunRecord, type StoredRun } from "#doors/ci/runs/record.ts";
import { inputsOf, withNeeds } from "#doors/ci/runs/stage-inputs.ts";
import { recall } from "#doors/ci/runs/texts.ts";
import { type CellView, reasonOf, type RunJobView, viewRun } from "#doors/ci/view.ts";
import type { ConditionPart } from "#doors/ci/workflow/expression/explain.ts";
import { explainJob } from "#doors/ci/workflow/plan/job-plan.ts";
import type { JobWhy, whyRun, whyStep } from "./endpoints.ts";
import { type Decisions, withDecisions } from "#doors/ci/runs/decisions.ts";
import { unknownLabels } from "./labels.ts";
import { conditionOf, tellCell, tellStep, tellUnplanned, type Wait } from "./tell.ts";

export type WhyPorts = {
  readonly client: Pick<WorkClient, "job" | "why" | "executors">;
  readonly start: { readonly blobs: BlobStore };
  readonly decisions: Decisions;
  readonly pools: DoorPorts["pools"];
};

export type RunOfTenant = { readonly run: string; readonly tenant: string };
type ExplainedJob = z.input<typeof JobWhy>;

/** Of a run with hundreds of cells, only so many are explained. */
const jobsMax = 100;
const runnersMax = 10;

type Explained = RunOfTenant & {
  readonly view: JobView;
  readonly shard: number;
  readonly waits: readonly Why[];
  readonly executors: readonly ExecutorView[];
  /** Undefined where the run's record is gone. */
  readonly written: { readonly record: RunRecord; readonly stored: StoredRun } | undefined;
};

async function explained({ client, start: { blobs } }: WhyPorts, { run, tenant }: RunOfTenant): Promise<Explained> {
  const { view: found, about } = await findRun(client, run, tenant);
  const isOver = found.endedAtMs !== undefined;
  const stored = await findStored(blobs, about.record);
  const record = stored && (await readRun(blobs, stored));
  return {
    run,
    tenant,
    view: record ? withNeeds(found, record) : found,
    shard: parseJob(run)?.shard ?? 0,
    waits: isOver ? [] : await client.why(run, { of: { tenant } }),
    executors: isOver ? [] : await client.executors(run, { tenant }),
    written: stored && record && { record, stored },
  };
}

export async function askRun(ports: WhyPorts, of: RunOfTenant): Promise<z.input<typeof whyRun.answer.schema>> {
  const about = await explained(ports, of);
  const { status, conclusion, jobs } = viewRun(about.view);
  const explainedJobs: ExplainedJob[] = [];
  for (const job of jobs) {
    if (explainedJobs.length >= jobsMax) break;
    explainedJobs.push(...(await tellJob(ports, about, job)));
  }
  const state = conclusion ?? (status === "in_progress" ? "is running" : "is queued");
  const why = reasonOf(about.view);
  const reason = why === "" ? "" : `: ${why}`;
  const wanted = explainedJobs.filter((one) => one.conclusion !== "success");
  const stands = await withDecisions({ status }, { ...of, tags: about.view.tags }, ports.decisions);
  const undecided = (stands.decisions ?? []).map(
    (key) => `it waits for a person: was ${key} done? millrace effect decide ${key} --done, or --not-done`,
  );
  return {
    run: of.run,
    ...stands,
    ...(conclusion && { conclusion }),
    lines: [`${of.run} ${state}${reason}`, ...undecided, ...wanted.flatMap(({ name, lines }) => under(name, lines))],
    jobs: explainedJobs,
  };
}

const under = (name: string, [first = "", ...rest]: readonly string[]): readonly string[] => [
  `${name}: ${first}`,
  ...rest.map((line) => `  ${line}`),
];

export async function askJob(ports: WhyPorts, of: RunOfTenant & { readonly job: string }): Promise<ExplainedJob> {
  const about = await explained(ports, of);
  const { jobs } = viewRun(about.view);
  const cell = findCell(about, of.job);
  const job = cell?.job ?? jobs.find(({ id, cells }) => id === of.job && cells.length === 0);
  if (!job) throw unknownJob(of);
  const [explanation] = await tellJob(ports, about, cell ? { ...job, cells: [cell.cell] } : job);
  if (!explanation) throw unknownJob(of);
  return explanation;
}

const unknownJob = ({ run, job }: { readonly run: string; readonly job: string }): Fault =>
  new Fault("not-found", "find the job", { run, job: job.slice(0, 200), try: `millrace why ${run}` });

export async function askStep(
  ports: WhyPorts,
  of: RunOfTenant & { readonly job: string; readonly step: number },
): Promise<z.input<typeof whyStep.answer.schema>> {
  const about = await explained(ports, of);
  const found = findCell(about, of.job);
  if (!found) throw unknownJob(of);
  const { steps } = found.cell;
  const step = steps.find(({ number }) => number === of.step);
  if (!step)
    throw new Fault("not-found", "find the step", {
      run: of.run,
      job: of.job,
      step: of.step,
      why: found.cell.status === "completed" ? "the job has no such step" : "the job has not come to it yet",
    });
  const details = await detailsOf(ports, about, found.cell);
  const condition = conditionOf(details, step.number);
  return {
    step: step.number,
    name: step.name,
    status: step.status,
    ...(step.conclusion && { conclusion: step.conclusion }),
    lines: tellStep(step, { details, steps }),
    ...(condition && { condition }),
  };
}

export async function askDetails(ports: WhyPorts, of: RunOfTenant & { readonly job: string }): Promise<JobDetails> {
  const { view } = await findRun(ports.client, of.run, of.tenant);
  const found = findCell({ view, shard: parseJob(of.run)?.shard ?? 0 }, of.job);
  if (!found) throw unknownJob(of);
  return await detailsOf(ports, { view }, found.cell);
}

type FoundCell = { readonly job: RunJobView; readonly cell: CellView };

/** By the task's id, or by a name that one cell has. */
function findCell({ view, shard }: Pick<Explained, "view" | "shard">, named: string): FoundCell | undefined {
  const all = viewRun(view).jobs.flatMap((job) => job.cells.map((cell) => ({ job, cell })));
  const byId = all.find(({ cell }) => formatTask(shard, cell.task) === named);
  const byName = all.filter(({ job, cell }) => cell.name === named || job.id === named);
  return byId ?? (byName.length === 1 ? byName[0] : undefined);
}

async function tellJob(ports: WhyPorts, about: Explained, job: RunJobView): Promise<readonly ExplainedJob[]> {
  const stage = about.view.stages.find(({ name }) => name === job.id && name !== conclusionStage);
  if (!stage) return [];
  if (job.cells.length > 0) {
    const isQueued = job.cells.some(({ status }) => status === "queued");
    const requires = isQueued ? await requiresIn(ports, about, stage) : undefined;
    return await Promise.all(
      job.cells.slice(0, jobsMax).map((cell) => tellOneCell(ports, about, { job, cell }, requires)),
    );
  }
  const wait = waitOf(about, ({ stage: number, task }) => number === stage.stage && task === 0);
  const planning = wait ?? waitOf(about, ({ stage: number }) => number === stage.stage);
  const condition = job.conclusion === "skipped" ? await conditionIn(ports, about, stage) : undefined;
  const { id, status, conclusion } = job;
  const isWaiting = conclusion === undefined && planning !== undefined;
  const made = isWaiting ? await madeFor(ports, about, planning, await requiresIn(ports, about, stage)) : [];
  return [
    {
      id,
      name: id,
      status,
      ...(conclusion && { conclusion }),
      lines: made.length > 0 ? made : tellUnplanned(job, planning, condition),
      ...(condition && { condition }),
      ...(planning && { waits: shownWait(planning) }),
    },
  ];
}

async function tellOneCell(
  ports: WhyPorts,
  about: Explained,
  { job, cell }: FoundCell,
  requires?: ReadonlyMap<string, readonly string[]>,
): Promise<ExplainedJob> {
  const wait = waitOf(about, ({ task }) => task === cell.task, requires);
  const details = cell.status === "completed" ? await detailsOf(ports, about, cell) : noDetails;
  const made = cell.status === "queued" ? await madeFor(ports, about, wait, requires) : [];
  return {
    id: job.id,
    name: cell.name,
    job: formatTask(about.shard, cell.task),
    status: cell.status,
    ...(cell.conclusion && { conclusion: cell.conclusion }),
    lines: [...tellCell(cell, isMade(wait, made) ? undefined : wait, details), ...made],
    ...(wait && { waits: shownWait(wait) }),
  };
}

async function madeFor(
  { pools }: WhyPorts,
  { tenant }: Explained,
  wait: Wait | undefined,
  requires: ReadonlyMap<string, readonly string[]> | undefined,
): Promise<readonly string[]> {
  const asks = requires?.get(wait?.key ?? "");
  return asks ? await pools({ tenant, requires: asks }) : [];
}

/** That no runner has the labels is no news where a pool makes one that has them. */
const isMade = (wait: Wait | undefined, made: readonly string[]): boolean =>
  made.length > 0 && wait?.because.kind === "no-executor";

function waitOf(
  { waits, executors }: Explained,
  isMeant: (why: Why) => boolean,
  requires: ReadonlyMap<string, readonly string[]> = new Map(),
): Wait | undefined {
  const found = waits.find(isMeant);
  if (!found) return undefined;
  const { because, key } = found;
  const asks = requires.get(key);
  const runners = because.kind === "queued" && asks ? runnersFor(asks, executors) : [];
  return {
    because,
    key,
    runners,
    unknown: because.kind === "no-executor" ? unknownLabels(because.missing, executors) : [],
  };
}

/** Who could run it and is not drained; `requires` is what it asks for. */
const runnersFor = (requires: readonly string[], executors: readonly ExecutorView[]): readonly string[] =>
  executors
    .filter(({ offers, drained }) => drained === undefined && takes(new Set(offers), { requires, planning: false }))
    .slice(0, runnersMax)
    .map(({ executor }) => executor);

/** By the key of each cell: the labels that it asks for. */
async function requiresIn(
  { start: { blobs } }: WhyPorts,
  { view, written }: Explained,
  stage: StageView,
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (!written) return new Map();
  const plan = planStage(await inputsOf(stage, { view, stored: written.stored }, blobs), written.record);
  const sets = plan.kind === "tasks" ? (plan.sets ?? []) : [];
  return new Map(sets.flatMap(({ template, tasks = [] }) => tasks.map(({ key }) => [key, template.requires] as const)));
}

const shownWait = ({ because, runners, unknown }: Wait): ExplainedJob["waits"] => ({
  ...because,
  ...(runners.length > 0 && { runners: [...runners] }),
  ...(unknown.length > 0 && { unknownLabels: unknown.map((one) => ({ ...one })) }),
});

/** The run was cancelled before the stage was planned: its reason says so. */
const wasCancelled = ({ reason }: StageView): boolean => reason.endsWith("(the run was cancelled)");

async function conditionIn(
  { start: { blobs } }: WhyPorts,
  { view, written }: Explained,
  stage: StageView,
): Promise<ConditionPart | undefined> {
  if (!written) return undefined;
  const inputs = await inputsOf(stage, { view, stored: written.stored }, blobs);
  const cancelled = wasCancelled(stage) ? { cancelled: { reason: "", forMs: 0 } } : {};
  const deciding = decidingJob({ ...inputs, ...cancelled }, written.record);
  return deciding && explainJob(deciding.job, deciding.frame, deciding.facts);
}

async function detailsOf(
  { start: { blobs } }: WhyPorts,
  { view }: Pick<Explained, "view">,
  cell: CellView,
): Promise<JobDetails> {
  const task = view.tasks.find((one) => one.task === cell.task);
  const left = task?.result ?? task?.lastFailure?.result;
  const blob = left && readCellResult(left.payload)?.details;
  return blob === undefined ? noDetails : await recall<JobDetails>(blobs, { blob }).catch(() => noDetails);
}

/**
 * How much heap memory a shard's things use, in bytes. A limit is only as good as its estimate: weigh.test.ts compares
 * these numbers with the heap.
 *
 * A job's estimate is updated as the job changes (`grow` in moves.ts), and `bytesOfJob` computes it from scratch: after
 * a snapshot was restored, and in tests, which compare the two after every command.
 */
import type {
  Audience,
  Executor,
  Gate,
  Job,
  LastEnd,
  Manifest,
  Planned,
  Stage,
  StageShape,
  Task,
} from "#kernel/model/entities.ts";
import type {
  ArrayPlan,
  Checkpoint,
  FailureCounts,
  LockSpec,
  Notice,
  Result,
  Reuse,
  Signal,
  Step,
} from "#kernel/model/model.ts";
import type { Tag, TaskPlan, TaskTemplate } from "#kernel/model/model.ts";
import type { ArrayFailure, EndsPage, TaskArray } from "#kernel/model/task-array.ts";
import type { KeyBinding } from "#kernel/model/state.ts";
import { bytesOfKept } from "#kernel/model/text-reference.ts";

const jobBytes = 350;
const stageBytes = 280;
const taskBytes = 290;
/** Bytes of one claim: the object, its entry in its executor's list and its entry in the agenda of deadlines. */
export const claimBytes = 220;
const keyEntryBytes = 160;
const tenantBytes = 1_400;
const executorEntryBytes = 700;
const resultEntryBytes = 160;
const publishBytes = 300;
const lockBytes = 450;
const taskLockBytes = 300;
/** A template that is not among those that stages share. */
const templateBytes = 200;
const listBytes = 32;
const tagBytes = 400;
const seriesBytes = 100;
const noticeBytes = 200;

const textHeadBytes = 32;
/** Shorter texts count as two bytes per character without being inspected: inspecting them costs more than it gains. */
const looksFrom = 48;
const beyondAscii = /[\u0080-\uffff]/;

/**
 * V8 stores a text with one byte per character where it can, but with two if the text was decoded from a wider
 * encoding.
 */
export function bytesOfText(text: string | undefined): number {
  if (text === undefined || text === "") return 0;
  const { length } = text;
  return textHeadBytes + (length < looksFrom || beyondAscii.test(text) ? 2 * length : length) + bytesOfKept(text);
}

function bytesOfTexts(texts: readonly string[]): number {
  let bytes = listBytes;
  for (const text of texts) bytes += 8 + bytesOfText(text);
  return bytes;
}

const bytesOfLock = (lock: LockSpec | undefined): number => (lock ? lockBytes + 2 * bytesOfText(lock.name) : 0);

export function bytesOfReuse(reuse: readonly Reuse[] | undefined): number {
  let bytes = 0;
  for (const { stage, key, spec, result } of reuse ?? [])
    bytes += 100 + bytesOfText(stage) + bytesOfText(key) + bytesOfText(spec) + bytesOfResult(result);
  return bytes;
}

export const bytesOfSubscriber = (subscriber: string): number => 40 + bytesOfText(subscriber);

export function bytesOfAudience(audience: Audience | undefined): number {
  if (!audience) return 0;
  let bytes = 300;
  for (const subscriber of audience.subscribers) bytes += bytesOfSubscriber(subscriber);
  return bytes;
}

/** The part of a submission that describes the job itself; the job has the same fields. */
type JobFacts = {
  readonly name: string;
  readonly spec: string;
  readonly mergeKey?: string | undefined;
  readonly lock?: LockSpec | undefined;
  readonly reuse?: readonly Reuse[] | undefined;
  readonly trace?: string | undefined;
};

/** Tags are stored in the job, and in the index with their tenant. */
export function bytesOfTags(tags: readonly Tag[] | undefined): number {
  let bytes = 0;
  for (const { name, value } of tags ?? []) bytes += tagBytes + 2 * (bytesOfText(name) + bytesOfText(value));
  return bytes;
}

export function bytesOfNotices(notices: readonly Notice[] | undefined): number {
  let bytes = 0;
  for (const { name } of notices ?? []) bytes += noticeBytes + bytesOfText(name);
  return bytes;
}

/** The name of the tenant counts with each: most tenants have few series. */
export const bytesOfSeries = (tenant: string, key: string): number =>
  seriesBytes + bytesOfText(tenant) + bytesOfText(key);

export const bytesOfJobAlone = ({ name, spec, mergeKey, lock, reuse, trace }: JobFacts): number =>
  jobBytes +
  bytesOfText(name) +
  bytesOfText(spec) +
  bytesOfText(trace) +
  // The key is stored as it came, and again as the index key.
  (mergeKey === undefined ? 0 : 150 + 3 * bytesOfText(mergeKey)) +
  bytesOfLock(lock) +
  bytesOfReuse(reuse);

/** Equal stages share their shape and template, but the estimate must not rely on stages being equal. */
export const bytesOfShape = ({
  name,
  needs,
  plan,
  lock,
}: Pick<StageShape, "name" | "needs" | "lock" | "plan">): number =>
  stageBytes +
  bytesOfText(name) +
  16 * needs.length +
  (plan ? 300 + bytesOfText(plan.kind) + bytesOfTexts(plan.requires) : 0) +
  bytesOfLock(lock);

export const bytesOfTemplate = ({ kind, requires, retries, lock }: TaskTemplate): number =>
  bytesOfText(kind) + bytesOfTexts(requires) + bytesOfFailures(retries) + bytesOfLock(lock);

/** What the locks of listed tasks take beside their template. */
export const bytesOfTaskLocks = ({ lock }: TaskTemplate, tasks: number): number => (lock ? taskLockBytes * tasks : 0);

export const bytesOfPlan = ({ key, spec, affinity }: TaskPlan): number =>
  taskBytes + bytesOfText(key) + bytesOfText(spec) + bytesOfText(affinity);

export function bytesOfPlans(plans: readonly TaskPlan[]): number {
  let bytes = 0;
  for (const plan of plans) bytes += bytesOfPlan(plan);
  return bytes;
}

export function bytesOfPlanned(planned: Planned | undefined): number {
  if (!planned) return 0;
  let bytes = 150 + bytesOfLock(planned.decides.lock);
  for (const template of planned.templates) bytes += templateBytes + bytesOfTemplate(template);
  return bytes;
}

/** An array without its tasks and results. */
export const bytesOfArrayAlone = ({ spec, count }: ArrayPlan): number =>
  600 + bytesOfText(spec) + resultReserve * count;

/**
 * Each task of an array will have a result: memory for it is set aside from the start. Otherwise arrays that were
 * accepted together could fill the memory that their own work needs to end.
 */
export const resultReserve = 240;

/** A task of an array shares its spec with the others. */
export const arrayTaskBytes = taskBytes + 60;

export const bytesOfPage = ({ size }: EndsPage): number => 480 + 26 * size;

export const bytesOfFailure = ({ message }: ArrayFailure): number => 60 + bytesOfText(message);

/** The results are weighed as they come: see `resultBytes`. */
export function bytesOfArray(array: TaskArray): number {
  let bytes = bytesOfArrayAlone(array.plan) - resultReserve * array.ended;
  bytes += bytesOfText(array.restReason) + array.resultBytes;
  for (const page of array.pages) if (page) bytes += bytesOfPage(page);
  for (const failure of array.failures) bytes += bytesOfFailure(failure);
  for (const task of array.live.values()) bytes += arrayTaskBytes + bytesOfTask(task) - bytesOfPlan(task.plan);
  return bytes;
}

export const bytesOfManifest = (manifest: Manifest | undefined): number =>
  manifest ? 80 + bytesOfText(manifest.digest) + bytesOfText(manifest.base) : 0;

/** A planning task is a task without key and spec of its own. */
export const planningBytes = taskBytes;

export function bytesOfResult(result: Result | undefined): number {
  if (!result) return 0;
  const { payload, digests, publish } = result;
  let bytes = resultEntryBytes + bytesOfText(payload);
  if (publish !== undefined) bytes += publishBytes + bytesOfText(publish);
  for (const digest of digests) bytes += 24 + textHeadBytes + digest.length;
  return bytes;
}

export const bytesOfSignal = ({ id, name, payload, by }: Signal): number =>
  96 + bytesOfText(id) + bytesOfText(name) + bytesOfText(payload) + bytesOfText(by);

export const bytesOfStep = ({ name }: Step): number => 80 + bytesOfText(name);

export const bytesOfLast = (last: LastEnd | undefined): number =>
  last ? 100 + bytesOfText(last.message) + bytesOfText(last.executor) + bytesOfResult(last.result) : 0;

export const bytesOfFailures = (failures: FailureCounts | undefined): number =>
  failures ? 56 + 16 * Object.keys(failures).length : 0;

export const bytesOfCheckpoint = (checkpoint: Checkpoint | undefined): number =>
  checkpoint ? 40 + bytesOfResult(checkpoint) : 0;

export const bytesOfNames = (names: readonly string[]): number => (names.length === 0 ? 0 : bytesOfTexts(names));

function bytesOfGate(gate: Gate | undefined): number {
  if (!gate) return 0;
  let bytes = bytesOfNames(gate.waitsFor);
  for (const signal of gate.signals) bytes += bytesOfSignal(signal);
  return bytes;
}

function bytesOfTask(task: Task): number {
  let bytes = bytesOfPlan(task.plan) + bytesOfResult(task.result) + bytesOfLast(task.last);
  bytes += bytesOfTaskLocks(task.template, 1);
  bytes += bytesOfCheckpoint(task.checkpoint) + bytesOfFailures(task.failures);
  for (const step of task.steps ?? []) bytes += bytesOfStep(step);
  return bytes;
}

function bytesOfStage(stage: Stage): number {
  let bytes = bytesOfShape(stage.shape) + bytesOfText(stage.reason) + bytesOfGate(stage.gate);
  bytes += bytesOfManifest(stage.manifest);
  if (stage.template) bytes += bytesOfTemplate(stage.template);
  bytes += bytesOfPlanned(stage.planned);
  // Held since an earlier plan.
  if (stage.lock !== stage.shape.lock && stage.lock !== stage.planned?.decides.lock) bytes += bytesOfLock(stage.lock);
  // All planning tasks share one name.
  if (stage.planning) bytes += planningBytes + bytesOfTask(stage.planning) - bytesOfPlan(stage.planning.plan);
  for (const task of stage.tasks) bytes += bytesOfTask(task);
  for (const array of stage.arrays ?? []) bytes += bytesOfArray(array);
  for (const [key, one] of stage.kept ?? []) bytes += bytesOfOldResult(key, one);
  return bytes;
}

export const bytesOfOldResult = (
  key: string,
  { spec, result }: { readonly spec: string; readonly result: Result },
): number => 100 + bytesOfText(key) + bytesOfText(spec) + bytesOfResult(result);

/** The estimate for a whole job, computed from scratch. */
export function bytesOfJob(job: Job): number {
  let bytes =
    bytesOfJobAlone(job) +
    bytesOfTags(job.extras?.tags) +
    bytesOfNotices(job.extras?.notify) +
    bytesOfText(job.reason) +
    bytesOfAudience(job.audience) +
    claimBytes * job.claims;
  for (const stage of job.stages) bytes += bytesOfStage(stage);
  return bytes;
}

export const bytesOfKey = (key: string, { payloadHash }: Pick<KeyBinding, "payloadHash">): number =>
  keyEntryBytes + bytesOfText(key) + bytesOfText(payloadHash);

export const bytesOfTenant = (name: string): number => tenantBytes + bytesOfText(name);

export const bytesOfExecutor = ({ id, offers = [], tenant, drained }: Executor): number =>
  executorEntryBytes + bytesOfText(id) + bytesOfTexts(offers) + bytesOfText(tenant) + bytesOfText(drained?.reason);

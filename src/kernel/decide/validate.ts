/**
 * All input is hostile: every count, length, time and shape is checked before anything is decided on it. Each function
 * returns the first thing that is wrong, or undefined.
 */
import { isDigest } from "#base/digest.ts";
import type { Submit } from "#kernel/model/command.ts";
import type { Limits } from "#kernel/model/limits.ts";
import type {
  Checkpoint,
  FailReason,
  FailureCounts,
  LockSpec,
  PlanDecides,
  PlanSpec,
  Result,
  Speculation,
  StageSpec,
  Step,
  TaskPlan,
  TaskSet,
  TaskTemplate,
} from "#kernel/model/model.ts";
import type { Rejection } from "#kernel/model/rejection.ts";

type Wrong = Rejection | undefined;

const invalid = (path: string, why: string): Rejection => ({ kind: "invalid", path, why });
const over = (what: string, limit: number, got: number): Rejection => ({ kind: "limit", what, limit, got });

/** Puts a field's complaint under the path of the object around it. Paths are built only when there is a complaint. */
export function within(path: string, wrong: Wrong): Wrong {
  if (wrong?.kind === "invalid") return { ...wrong, path: join(path, wrong.path) };
  if (wrong?.kind === "limit") return { ...wrong, what: join(path, wrong.what) };
  return wrong;
}

const join = (path: string, rest: string): string => (rest === "" ? path : `${path}.${rest}`);

export function wrongText(path: string, value: unknown, lengthMax: number, lengthMin = 0): Wrong {
  if (typeof value !== "string") return invalid(path, "must be text");
  if (value.length < lengthMin) return invalid(path, "must not be empty");
  if (value.length > lengthMax) return over(path, lengthMax, value.length);
  return undefined;
}

export function wrongWhole(path: string, value: unknown, min: number, max: number): Wrong {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) return invalid(path, "must be a whole number");
  if (value < min) return invalid(path, `must be at least ${min}`);
  if (value > max) return over(path, max, value);
  return undefined;
}

export function wrongChoice(path: string, value: unknown, choices: readonly unknown[]): Wrong {
  return choices.includes(value) ? undefined : invalid(path, `must be one of ${choices.join(", ")}`);
}

export function wrongList(path: string, value: unknown, sizeMax: number): Wrong {
  if (!Array.isArray(value)) return invalid(path, "must be a list");
  return value.length > sizeMax ? over(path, sizeMax, value.length) : undefined;
}

/**
 * A short list of names: labels, hints, signals. Their total length is limited too, because every executor has such a
 * list.
 */
export function wrongTexts(path: string, texts: unknown, limits: Limits): Wrong {
  const wrong = wrongList(path, texts, limits.labelsMax);
  if (wrong) return wrong;
  let length = 0;
  for (const text of texts as readonly unknown[]) {
    const wrongOne = wrongText(path, text, limits.nameLengthMax, 1);
    if (wrongOne) return wrongOne;
    length += (text as string).length;
  }
  return length > limits.labelsLengthMax ? over(`length of ${path}`, limits.labelsLengthMax, length) : undefined;
}

/** Sorted and without repeats, so that equal sets compare as equal. */
export function wrongLabels(path: string, labels: unknown, limits: Limits): Wrong {
  const wrong = wrongTexts(path, labels, limits);
  if (wrong) return wrong;
  let last = "";
  for (const label of labels as readonly unknown[]) {
    if ((label as string) <= last) return invalid(path, "must be sorted and without repeats");
    if ((label as string).includes("\u0000")) return invalid(path, "must not contain a NUL character");
    last = label as string;
  }
  return undefined;
}

export function wrongSubmit(submit: Submit, limits: Limits): Wrong {
  return (
    wrongText("tenant", submit.tenant, limits.nameLengthMax, 1) ??
    wrongText("door", submit.door, limits.nameLengthMax, 1) ??
    wrongText("name", submit.name, limits.nameLengthMax) ??
    wrongText("payloadHash", submit.payloadHash, limits.nameLengthMax) ??
    wrongText("spec", submit.spec, limits.specBytesMax) ??
    wrongOptional("requestKey", submit.requestKey, limits) ??
    wrongOptional("mergeKey", submit.mergeKey, limits) ??
    wrongOptional("subscriber", submit.subscriber, limits) ??
    wrongOptional("trace", submit.trace, limits) ??
    wrongOptional("series", submit.series, limits) ??
    wrongNames(submit) ??
    wrongWhole("priority", submit.priority, -100, 100) ??
    wrongWhole("leaveGraceMs", submit.leaveGraceMs ?? 0, 0, limits.durationMsMax) ??
    (submit.joinOnly === undefined ? undefined : wrongChoice("joinOnly", submit.joinOnly, booleans)) ??
    (submit.joinOnly ? wrongJoin(submit) : wrongWork(submit, limits))
  );
}

function wrongWork(submit: Submit, limits: Limits): Wrong {
  return (
    wrongWhole("deadlineMs", submit.deadlineMs, 1, limits.jobDeadlineMsMax) ??
    (submit.cancelGraceMs === undefined
      ? undefined
      : wrongWhole("cancelGraceMs", submit.cancelGraceMs, 0, limits.durationMsMax)) ??
    (submit.lock === undefined ? undefined : within("lock", wrongLock(submit.lock, limits))) ??
    wrongReuse(submit, limits) ??
    wrongStages(submit.stages, limits) ??
    wrongSelfLock(submit)
  );
}

/** A submission that only joins must say which job it means, and must not describe any work. */
function wrongJoin({ mergeKey, stages, deadlineMs, lock, reuse, tags, series, notify }: Submit): Wrong {
  if (mergeKey === undefined) return invalid("mergeKey", "is needed to say which job to join");
  const isBare = Array.isArray(stages) && stages.length === 0 && deadlineMs === 0;
  const others = [lock, reuse, tags, series, notify];
  if (isBare && others.every((other) => other === undefined)) return undefined;
  return invalid("joinOnly", "must have no stages, deadlineMs, lock, reuse, tags, series or notify: it starts no job");
}

/** A job that holds a lock while its own stage or task waits for that lock would wait for itself. */
function wrongSelfLock({ lock, stages }: Submit): Wrong {
  const at = lock ? stages.findIndex((stage) => stage.lock?.name === lock.name) : -1;
  if (at !== -1) return invalid(`stages[${at}].lock.name`, "must not be the lock of the job itself");
  for (const [i, { tasks, lock: ofStage }] of stages.entries()) {
    const wrong = tasks && wrongTaskLock(tasks, [lock, ofStage]);
    if (wrong) return within(`stages[${i}].tasks`, wrong);
  }
  return undefined;
}

/** `held`: what its job and its stage hold while the tasks run. */
export function wrongTaskLock({ template: { lock }, array }: TaskSet, held: readonly (LockSpec | undefined)[]): Wrong {
  if (!lock) return undefined;
  if (array) return invalid("template.lock", "not for an array: use parallelMax");
  return held.some((other) => other?.name === lock.name)
    ? invalid("template.lock.name", "must not be the lock of its own stage or job")
    : undefined;
}

function wrongOptional(path: string, value: string | undefined, limits: Limits): Wrong {
  return value === undefined ? undefined : wrongText(path, value, limits.nameLengthMax, 1);
}

/** Names are joined with NUL to make keys: a NUL inside a name would let a tenant reach another tenant's keys. */
function wrongNames({ tenant, door, requestKey, mergeKey, series }: Submit): Wrong {
  return hasNul(tenant) || hasNul(door) || hasNul(requestKey) || hasNul(mergeKey) || hasNul(series)
    ? invalid("tenant, door, requestKey, mergeKey, series", "must not contain a NUL character")
    : undefined;
}

const hasNul = (name: string | undefined): boolean => name !== undefined && name.includes("\u0000");

function wrongReuse(submit: Submit, limits: Limits): Wrong {
  if (submit.reuse === undefined) return undefined;
  const wrong = wrongList("reuse", submit.reuse, limits.tasksPerStageMax);
  if (wrong) return wrong;
  for (const [i, reuse] of submit.reuse.entries()) {
    const wrongOne =
      wrongText("stage", reuse.stage, limits.nameLengthMax) ??
      wrongText("key", reuse.key, limits.nameLengthMax) ??
      wrongText("spec", reuse.spec, limits.specBytesMax) ??
      within("result", wrongResult(reuse.result, limits));
    if (wrongOne) return within(`reuse[${i}]`, wrongOne);
  }
  return undefined;
}

function wrongStages(stages: readonly StageSpec[], limits: Limits): Wrong {
  const wrong = wrongList("stages", stages, limits.stagesMax);
  if (wrong) return wrong;
  if (stages.length === 0) return invalid("stages", "must not be empty");
  for (let i = 0; i < stages.length; i += 1) {
    const wrongStage = wrongOneStage(stages[i] as StageSpec, stages.length, limits);
    if (wrongStage) return within(`stages[${i}]`, wrongStage);
  }
  return findCycle(stages);
}

const booleans = [true, false];
const afters = ["success", "end"];
const retries = ["infrastructure", "any"];
const effects = ["pure", "outside"];

function wrongOneStage(stage: StageSpec, count: number, limits: Limits): Wrong {
  const wrong =
    wrongText("name", stage.name, limits.nameLengthMax, 1) ??
    wrongList("needs", stage.needs, limits.needsMax) ??
    wrongChoice("after", stage.after, afters) ??
    wrongChoice("failFast", stage.failFast, booleans) ??
    wrongChoice("mayFail", stage.mayFail, booleans) ??
    wrongWhole("parallelMax", stage.parallelMax, 0, limits.tasksPerStageMax);
  if (wrong) return wrong;
  if (stage.needs.length > 1 && new Set(stage.needs).size !== stage.needs.length)
    return invalid("needs", "must not repeat a stage");
  for (const need of stage.needs) {
    const wrongNeed = wrongWhole("needs", need, 0, count - 1);
    if (wrongNeed) return wrongNeed;
  }
  if ((stage.tasks === undefined) === (stage.plan === undefined))
    return invalid("", "must have either tasks or a plan");
  return (
    (stage.manifest === undefined ? undefined : wrongChoice("manifest", stage.manifest, booleans)) ??
    (stage.tasks === undefined ? undefined : within("tasks", wrongTasks(stage.tasks, limits))) ??
    (stage.plan === undefined ? undefined : within("plan", wrongPlan(stage.plan, limits))) ??
    (stage.lock === undefined ? undefined : within("lock", wrongLock(stage.lock, limits)))
  );
}

export function wrongTasks(set: TaskSet, limits: Limits): Wrong {
  const wrong = within("template", wrongTemplate(set.template, limits));
  if (wrong) return wrong;
  if (set.array !== undefined) return within("array", wrongArray(set, limits));
  const wrongCount = wrongList("tasks", set.tasks, limits.tasksPerStageMax);
  if (wrongCount) return wrongCount;
  for (let i = 0; i < set.tasks.length; i += 1) {
    const wrongTask = wrongOneTask(set.tasks[i] as TaskPlan, limits);
    if (wrongTask) return within(`tasks[${i}]`, wrongTask);
  }
  if (set.tasks.length < 2 || new Set(set.tasks.map(({ key }) => key)).size === set.tasks.length) return undefined;
  return invalid("tasks", "must not repeat a key");
}

function wrongArray({ array, tasks }: TaskSet, limits: Limits): Wrong {
  if (typeof array !== "object" || array === null) return invalid("", "must be an array of tasks");
  if (tasks !== undefined) return invalid("", "must not be there together with a list of tasks");
  return (
    wrongWhole("count", array.count, 0, limits.arrayTasksMax) ??
    wrongWhole("first", array.first ?? 0, 0, arrayFirstMax) ??
    wrongText("spec", array.spec, limits.specBytesMax)
  );
}

/** So that the index of every task is a safe whole number. */
const arrayFirstMax = 2 ** 52;

function wrongOneTask(task: TaskPlan, limits: Limits): Wrong {
  if (typeof task !== "object" || task === null) return invalid("", "must be a task");
  return (
    wrongText("key", task.key, limits.nameLengthMax, 1) ??
    wrongText("spec", task.spec, limits.specBytesMax) ??
    (task.affinity === undefined ? undefined : wrongText("affinity", task.affinity, limits.nameLengthMax))
  );
}

function wrongTemplate(template: TaskTemplate, limits: Limits): Wrong {
  if (typeof template !== "object" || template === null) return invalid("", "must be a template");
  return (
    wrongText("kind", template.kind, limits.nameLengthMax, 1) ??
    wrongLabels("requires", template.requires, limits) ??
    wrongWhole("leaseMs", template.leaseMs, limits.leaseMsMin, limits.leaseMsMax) ??
    wrongWhole("attemptsMax", template.attemptsMax, 1, limits.attemptsMax) ??
    wrongChoice("retryOn", template.retryOn, retries) ??
    wrongWhole("backoffMs", template.backoffMs, 0, limits.durationMsMax) ??
    wrongWhole("backoffMsMax", template.backoffMsMax, 0, limits.durationMsMax) ??
    wrongWhole("queueMs", template.queueMs, 1, limits.durationMsMax) ??
    wrongWhole("attemptMs", template.attemptMs, 1, limits.durationMsMax) ??
    wrongChoice("effects", template.effects, effects) ??
    wrongChoice("speculate", template.speculate, booleans) ??
    wrongWhole("graceMs", template.graceMs, 0, limits.leaseMsMax) ??
    (template.stopMs === undefined ? undefined : wrongWhole("stopMs", template.stopMs, 0, limits.stopMsMax)) ??
    (template.lossesMax === undefined
      ? undefined
      : wrongWhole("lossesMax", template.lossesMax, 0, limits.attemptsMax)) ??
    (template.retries === undefined ? undefined : within("retries", wrongRetries(template.retries, limits))) ??
    (template.speculation === undefined ? undefined : within("speculation", wrongSpeculation(template.speculation))) ??
    (template.lock === undefined ? undefined : within("lock", wrongLock(template.lock, limits))) ??
    (template.effects === "outside" && (template.speculate || template.graceMs > 0)
      ? invalid("", "work with outside effects may have neither speculation nor grace")
      : undefined)
  );
}

export const failReasons: readonly FailReason[] = [
  "executor-lost",
  "preempted",
  "timed-out",
  "out-of-memory",
  "input-lost",
  "user-failure",
  "cancelled",
];

function wrongRetries(retries: FailureCounts, limits: Limits): Wrong {
  if (typeof retries !== "object" || retries === null) return invalid("", "must be counts by reason");
  for (const [reason, count] of Object.entries(retries)) {
    const wrong = wrongChoice("reason", reason, failReasons) ?? wrongWhole(reason, count, 0, limits.attemptsMax);
    if (wrong) return wrong;
  }
  return undefined;
}

function wrongSpeculation(rule: Speculation): Wrong {
  if (typeof rule !== "object" || rule === null) return invalid("", "must be a rule");
  return (
    wrongWhole("percentile", rule.percentile, 1, 100) ??
    wrongWhole("factorPercent", rule.factorPercent, 100, 100_000) ??
    wrongWhole("slots", rule.slots, 1, 100_000)
  );
}

function wrongPlan(plan: PlanSpec, limits: Limits): Wrong {
  return (
    wrongText("kind", plan.kind, limits.nameLengthMax, 1) ??
    wrongLabels("requires", plan.requires, limits) ??
    wrongWhole("leaseMs", plan.leaseMs, limits.leaseMsMin, limits.leaseMsMax) ??
    wrongWhole("attemptsMax", plan.attemptsMax, 1, limits.attemptsMax) ??
    wrongWhole("deadlineMs", plan.deadlineMs, 1, limits.durationMsMax)
  );
}

export function wrongDecides(decides: PlanDecides, limits: Limits): Wrong {
  if (typeof decides !== "object" || decides === null) return invalid("", "must be what the plan decides");
  const { lock, failFast, mayFail, parallelMax } = decides;
  return (
    (lock === undefined ? undefined : within("lock", wrongLock(lock, limits))) ??
    (failFast === undefined ? undefined : wrongChoice("failFast", failFast, booleans)) ??
    (mayFail === undefined ? undefined : wrongChoice("mayFail", mayFail, booleans)) ??
    (parallelMax === undefined ? undefined : wrongWhole("parallelMax", parallelMax, 0, limits.tasksPerStageMax))
  );
}

function wrongLock(lock: LockSpec, limits: Limits): Wrong {
  if (typeof lock !== "object" || lock === null) return invalid("", "must be a lock");
  return (
    wrongText("name", lock.name, limits.nameLengthMax, 1) ??
    wrongWhole("limit", lock.limit, 1, 1_000) ??
    wrongWhole("queueMax", lock.queueMax, 1, 10_000) ??
    wrongChoice("cancelInProgress", lock.cancelInProgress, booleans)
  );
}

/** `pinned`: the blobs that the host found and pinned. Blobs that were found have valid digests. */
export function wrongResult(result: Result, limits: Limits, pinned?: readonly string[]): Wrong {
  if (typeof result !== "object" || result === null) return invalid("", "must be a result");
  const wrong =
    wrongText("payload", result.payload, limits.resultBytesMax) ??
    wrongList("digests", result.digests, limits.digestsMax) ??
    (result.publish === undefined ? undefined : wrongText("publish", result.publish, limits.publishBytesMax, 1));
  if (wrong || result.digests === pinned) return wrong;
  for (const digest of result.digests)
    if (typeof digest !== "string" || !isDigest(digest)) return invalid("digests", "must be digests");
  return undefined;
}

export function wrongCheckpoint(checkpoint: Checkpoint, limits: Limits): Wrong {
  return wrongResult(checkpoint, limits) ?? wrongList("digests", checkpoint.digests, limits.checkpointDigestsMax);
}

const stepStatuses = ["started", "succeeded", "failed", "skipped", "progress"];

export function wrongSteps(steps: readonly Step[], limits: Limits): Wrong {
  const wrong = wrongList("steps", steps, limits.stepsMax);
  if (wrong) return wrong;
  for (const step of steps) {
    const wrongStep =
      wrongWhole("steps.step", step.step, 0, limits.stepsPerTaskMax) ??
      wrongText("steps.name", step.name, limits.nameLengthMax) ??
      wrongChoice("steps.status", step.status, stepStatuses);
    if (wrongStep) return wrongStep;
  }
  return undefined;
}

const needsNothing = (stage: StageSpec): boolean => stage.needs.length === 0;

/** Removes stages whose needs are all gone until no more can be removed: the stages that remain form a cycle. */
function findCycle(stages: readonly StageSpec[]): Wrong {
  if (stages.every(needsNothing)) return undefined;
  const waiting = stages.map((stage) => stage.needs.length);
  const dependents: number[][] = stages.map(() => []);
  for (const [i, stage] of stages.entries()) for (const need of stage.needs) dependents[need]?.push(i);
  const free = waiting.flatMap((count, i) => (count === 0 ? [i] : []));
  let taken = 0;
  for (let next = free.pop(); next !== undefined; next = free.pop()) {
    taken += 1;
    for (const dependent of dependents[next] ?? []) {
      const left = (waiting[dependent] ?? 0) - 1;
      waiting[dependent] = left;
      if (left === 0) free.push(dependent);
    }
  }
  if (taken === stages.length) return undefined;
  const names = stages.filter((_, i) => (waiting[i] ?? 0) > 0).map((stage) => stage.name);
  return { kind: "cycle", stages: names.slice(0, 10) };
}

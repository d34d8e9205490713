/**
 * All input is hostile: every count, length, time and shape is checked before anything is decided on it.
 * Each function answers with the first thing wrong, or undefined.
 */
import { isDigest } from "#base/digest.ts";
import type { Submit } from "./command.ts";
import type { Limits } from "./limits.ts";
import type { LockSpec, PlanSpec, Result, StageSpec, Step, TaskSet, TaskTemplate } from "./model.ts";
import type { Rejection } from "./rejection.ts";

type Wrong = Rejection | undefined;

const invalid = (path: string, why: string): Rejection => ({ kind: "invalid", path, why });
const over = (what: string, limit: number, got: number): Rejection => ({ kind: "limit", what, limit, got });

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

/** Sorted and without repeats, so that equal sets look equal. */
export function wrongLabels(path: string, labels: unknown, limits: Limits): Wrong {
  const wrong = wrongList(path, labels, limits.labelsMax);
  if (wrong) return wrong;
  let last = "";
  for (const label of labels as readonly unknown[]) {
    const wrongLabel = wrongText(path, label, limits.nameLengthMax, 1);
    if (wrongLabel) return wrongLabel;
    if ((label as string) <= last) return invalid(path, "must be sorted and without repeats");
    if ((label as string).includes("\u0000")) return invalid(path, "must not hold a NUL character");
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
    wrongNames([submit.tenant, submit.door, submit.requestKey, submit.mergeKey]) ??
    wrongWhole("priority", submit.priority, -100, 100) ??
    wrongWhole("deadlineMs", submit.deadlineMs, 1, limits.jobDeadlineMsMax) ??
    wrongWhole("leaveGraceMs", submit.leaveGraceMs ?? 0, 0, limits.durationMsMax) ??
    (submit.lock === undefined ? undefined : wrongLock("lock", submit.lock, limits)) ??
    wrongReuse(submit, limits) ??
    wrongStages(submit.stages, limits) ??
    wrongSelfLock(submit)
  );
}

/** A job that holds a lock and whose stage waits for the same would wait for itself. */
function wrongSelfLock({ lock, stages }: Submit): Wrong {
  const at = lock ? stages.findIndex((stage) => stage.lock?.name === lock.name) : -1;
  return at === -1 ? undefined : invalid(`stages[${at}].lock.name`, "must not be the lock of the job itself");
}

function wrongOptional(path: string, value: string | undefined, limits: Limits): Wrong {
  return value === undefined ? undefined : wrongText(path, value, limits.nameLengthMax, 1);
}

/** Names are joined with NUL to make keys: one inside would let a tenant reach into another's. */
function wrongNames(names: readonly (string | undefined)[]): Wrong {
  return names.some((name) => name?.includes("\u0000"))
    ? invalid("tenant, door, requestKey, mergeKey", "must not hold a NUL character")
    : undefined;
}

function wrongReuse(submit: Submit, limits: Limits): Wrong {
  if (submit.reuse === undefined) return undefined;
  const wrong = wrongList("reuse", submit.reuse, limits.tasksPerStageMax);
  if (wrong) return wrong;
  for (const [i, reuse] of submit.reuse.entries()) {
    const wrongOne =
      wrongText(`reuse[${i}].stage`, reuse.stage, limits.nameLengthMax) ??
      wrongText(`reuse[${i}].key`, reuse.key, limits.nameLengthMax) ??
      wrongText(`reuse[${i}].spec`, reuse.spec, limits.specBytesMax) ??
      wrongResult(`reuse[${i}].result`, reuse.result, limits);
    if (wrongOne) return wrongOne;
  }
  return undefined;
}

function wrongStages(stages: readonly StageSpec[], limits: Limits): Wrong {
  const wrong = wrongList("stages", stages, limits.stagesMax);
  if (wrong) return wrong;
  if (stages.length === 0) return invalid("stages", "must not be empty");
  for (let i = 0; i < stages.length; i += 1) {
    const wrongStage = wrongOneStage(`stages[${i}]`, stages[i] as StageSpec, stages.length, limits);
    if (wrongStage) return wrongStage;
  }
  return findCycle(stages);
}

function wrongOneStage(path: string, stage: StageSpec, count: number, limits: Limits): Wrong {
  const wrong =
    wrongText(`${path}.name`, stage.name, limits.nameLengthMax, 1) ??
    wrongList(`${path}.needs`, stage.needs, limits.needsMax) ??
    wrongChoice(`${path}.after`, stage.after, ["success", "end"]) ??
    wrongChoice(`${path}.failFast`, stage.failFast, [true, false]) ??
    wrongChoice(`${path}.mayFail`, stage.mayFail, [true, false]) ??
    wrongWhole(`${path}.parallelMax`, stage.parallelMax, 0, limits.tasksPerStageMax);
  if (wrong) return wrong;
  if (new Set(stage.needs).size !== stage.needs.length) return invalid(`${path}.needs`, "must not repeat a stage");
  for (const need of stage.needs) {
    const wrongNeed = wrongWhole(`${path}.needs`, need, 0, count - 1);
    if (wrongNeed) return wrongNeed;
  }
  if ((stage.tasks === undefined) === (stage.plan === undefined))
    return invalid(path, "must have either tasks or a plan");
  return (
    (stage.tasks === undefined ? undefined : wrongTasks(`${path}.tasks`, stage.tasks, limits)) ??
    (stage.plan === undefined ? undefined : wrongPlan(`${path}.plan`, stage.plan, limits)) ??
    (stage.lock === undefined ? undefined : wrongLock(`${path}.lock`, stage.lock, limits))
  );
}

export function wrongTasks(path: string, set: TaskSet, limits: Limits): Wrong {
  const wrong =
    wrongTemplate(`${path}.template`, set.template, limits) ??
    wrongList(`${path}.tasks`, set.tasks, limits.tasksPerStageMax);
  if (wrong) return wrong;
  const keys = new Set<string>();
  for (let i = 0; i < set.tasks.length; i += 1) {
    const task = set.tasks[i];
    if (typeof task !== "object" || task === null) return invalid(`${path}.tasks[${i}]`, "must be a task");
    const wrongTask =
      wrongText(`${path}.tasks[${i}].key`, task.key, limits.nameLengthMax, 1) ??
      wrongText(`${path}.tasks[${i}].spec`, task.spec, limits.specBytesMax) ??
      (task.affinity === undefined
        ? undefined
        : wrongText(`${path}.tasks[${i}].affinity`, task.affinity, limits.nameLengthMax));
    if (wrongTask) return wrongTask;
    keys.add(task.key);
  }
  return keys.size === set.tasks.length ? undefined : invalid(`${path}.tasks`, "must not repeat a key");
}

function wrongTemplate(path: string, template: TaskTemplate, limits: Limits): Wrong {
  if (typeof template !== "object" || template === null) return invalid(path, "must be a template");
  return (
    wrongText(`${path}.kind`, template.kind, limits.nameLengthMax, 1) ??
    wrongLabels(`${path}.requires`, template.requires, limits) ??
    wrongWhole(`${path}.leaseMs`, template.leaseMs, limits.leaseMsMin, limits.leaseMsMax) ??
    wrongWhole(`${path}.attemptsMax`, template.attemptsMax, 1, limits.attemptsMax) ??
    wrongChoice(`${path}.retryOn`, template.retryOn, ["infrastructure", "any"]) ??
    wrongWhole(`${path}.backoffMs`, template.backoffMs, 0, limits.durationMsMax) ??
    wrongWhole(`${path}.backoffMsMax`, template.backoffMsMax, 0, limits.durationMsMax) ??
    wrongWhole(`${path}.queueMs`, template.queueMs, 1, limits.durationMsMax) ??
    wrongWhole(`${path}.attemptMs`, template.attemptMs, 1, limits.durationMsMax) ??
    wrongChoice(`${path}.effects`, template.effects, ["pure", "outside"]) ??
    wrongChoice(`${path}.speculate`, template.speculate, [true, false]) ??
    wrongWhole(`${path}.graceMs`, template.graceMs, 0, limits.leaseMsMax) ??
    (template.effects === "outside" && (template.speculate || template.graceMs > 0)
      ? invalid(path, "work with outside effects may have neither speculation nor grace")
      : undefined)
  );
}

function wrongPlan(path: string, plan: PlanSpec, limits: Limits): Wrong {
  return (
    wrongText(`${path}.kind`, plan.kind, limits.nameLengthMax, 1) ??
    wrongLabels(`${path}.requires`, plan.requires, limits) ??
    wrongWhole(`${path}.leaseMs`, plan.leaseMs, limits.leaseMsMin, limits.leaseMsMax) ??
    wrongWhole(`${path}.attemptsMax`, plan.attemptsMax, 1, limits.attemptsMax) ??
    wrongWhole(`${path}.deadlineMs`, plan.deadlineMs, 1, limits.durationMsMax)
  );
}

function wrongLock(path: string, lock: LockSpec, limits: Limits): Wrong {
  return (
    wrongText(`${path}.name`, lock.name, limits.nameLengthMax, 1) ??
    wrongWhole(`${path}.limit`, lock.limit, 1, 1_000) ??
    wrongWhole(`${path}.queueMax`, lock.queueMax, 1, 10_000) ??
    wrongChoice(`${path}.cancelInProgress`, lock.cancelInProgress, [true, false])
  );
}

export function wrongResult(path: string, result: Result, limits: Limits): Wrong {
  if (typeof result !== "object" || result === null) return invalid(path, "must be a result");
  const wrong =
    wrongText(`${path}.payload`, result.payload, limits.resultBytesMax) ??
    wrongList(`${path}.digests`, result.digests, limits.digestsMax);
  if (wrong) return wrong;
  for (const digest of result.digests)
    if (typeof digest !== "string" || !isDigest(digest)) return invalid(`${path}.digests`, "must be digests");
  return undefined;
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

/** Takes away stages whose needs are all gone until none can be taken: what is left goes in circles. */
function findCycle(stages: readonly StageSpec[]): Wrong {
  if (stages.every((stage) => stage.needs.length === 0)) return undefined;
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

/**
 * The kernel's string constants as enum numbers of the work protocol and back, and the Faults for invalid messages.
 * Part of the translation between `protocol.ts` and `proto/millrace/work/v1`: pure, no sockets.
 */
import { Fault, isFault } from "#base/fault.ts";
import type {
  FailReason as FailReasonWord,
  JobPhase as JobPhaseWord,
  Plan,
  StagePhase as StagePhaseWord,
  StageSpec,
  StepStatus as StepStatusWord,
  TaskPhase as TaskPhaseWord,
  TaskTemplate,
} from "#kernel/model/model.ts";
import {
  After,
  Effects,
  FailReason,
  JobPhase,
  PlanKind,
  RetryOn,
  StagePhase,
  StepStatus,
  TaskPhase,
} from "#wire/generated/millrace/work/v1/model.ts";

type EnumMap<W extends string> = {
  /** 0, "unspecified", for an unknown constant: the receiver then reports the field. */
  numberOf(word: W): number;
  wordOf(number: number): W | undefined;
};

function enumMap<W extends string>(numbers: Readonly<Record<W, number>>): EnumMap<W> {
  const byNumber: (W | undefined)[] = [];
  for (const [word, number] of Object.entries(numbers)) byNumber[number as number] = word as W;
  return {
    numberOf: (word) => (Object.hasOwn(numbers, word) ? numbers[word] : 0),
    wordOf: (number) => byNumber[number],
  };
}

export const jobPhases = enumMap<JobPhaseWord>({
  WAITING: JobPhase.JOB_PHASE_WAITING,
  RUNNING: JobPhase.JOB_PHASE_RUNNING,
  CANCELLING: JobPhase.JOB_PHASE_CANCELLING,
  SUCCEEDED: JobPhase.JOB_PHASE_SUCCEEDED,
  FAILED: JobPhase.JOB_PHASE_FAILED,
  CANCELLED: JobPhase.JOB_PHASE_CANCELLED,
});

export const stagePhases = enumMap<StagePhaseWord>({
  BLOCKED: StagePhase.STAGE_PHASE_BLOCKED,
  READY: StagePhase.STAGE_PHASE_READY,
  RUNNING: StagePhase.STAGE_PHASE_RUNNING,
  COMPLETED: StagePhase.STAGE_PHASE_COMPLETED,
  FAILED: StagePhase.STAGE_PHASE_FAILED,
  SKIPPED: StagePhase.STAGE_PHASE_SKIPPED,
  CANCELLED: StagePhase.STAGE_PHASE_CANCELLED,
});

export const taskPhases = enumMap<TaskPhaseWord>({
  READY: TaskPhase.TASK_PHASE_READY,
  CLAIMED: TaskPhase.TASK_PHASE_CLAIMED,
  RUNNING: TaskPhase.TASK_PHASE_RUNNING,
  RETRY_PENDING: TaskPhase.TASK_PHASE_RETRY_PENDING,
  WAITING: TaskPhase.TASK_PHASE_WAITING,
  CANCELLING: TaskPhase.TASK_PHASE_CANCELLING,
  SUCCEEDED: TaskPhase.TASK_PHASE_SUCCEEDED,
  FAILED: TaskPhase.TASK_PHASE_FAILED,
  CANCELLED: TaskPhase.TASK_PHASE_CANCELLED,
});

export const failReasons = enumMap<FailReasonWord>({
  "executor-lost": FailReason.FAIL_REASON_EXECUTOR_LOST,
  preempted: FailReason.FAIL_REASON_PREEMPTED,
  "timed-out": FailReason.FAIL_REASON_TIMED_OUT,
  "out-of-memory": FailReason.FAIL_REASON_OUT_OF_MEMORY,
  "input-lost": FailReason.FAIL_REASON_INPUT_LOST,
  "user-failure": FailReason.FAIL_REASON_USER_FAILURE,
  cancelled: FailReason.FAIL_REASON_CANCELLED,
});

export const retryOns = enumMap<TaskTemplate["retryOn"]>({
  infrastructure: RetryOn.RETRY_ON_INFRASTRUCTURE,
  any: RetryOn.RETRY_ON_ANY,
});

export const effects = enumMap<TaskTemplate["effects"]>({
  pure: Effects.EFFECTS_PURE,
  outside: Effects.EFFECTS_OUTSIDE,
});

export const afters = enumMap<StageSpec["after"]>({ success: After.AFTER_SUCCESS, end: After.AFTER_END });

export const stepStatuses = enumMap<StepStatusWord>({
  started: StepStatus.STEP_STATUS_STARTED,
  succeeded: StepStatus.STEP_STATUS_SUCCEEDED,
  failed: StepStatus.STEP_STATUS_FAILED,
  skipped: StepStatus.STEP_STATUS_SKIPPED,
  progress: StepStatus.STEP_STATUS_PROGRESS,
});

export const planKinds = enumMap<Plan["kind"]>({
  tasks: PlanKind.PLAN_KIND_TASKS,
  skip: PlanKind.PLAN_KIND_SKIP,
  fail: PlanKind.PLAN_KIND_FAIL,
  wait: PlanKind.PLAN_KIND_WAIT,
});

/** `path` leads to the field, in the names of protobuf's JSON. */
export function refuse(path: string, why: string): never {
  throw new Fault("invalid", "read message", { path, why });
}

/** For `wordOf`: `wordOf(number) ?? noSuch("after")`. */
export const noSuch = (path: string): never => refuse(path, "must be one of the values of its type, and not 0");

export const must = <T>(value: T | undefined, path: string): T => value ?? refuse(path, "must be there");

/** Reads a part and puts its complaints under `path`. Paths are built only when there is a complaint. */
export function within<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw withPath(path, error);
  }
}

/** Reads a required part. */
export function readPart<W, K>(path: string, part: W | undefined, read: (part: W) => K): K {
  const there = must(part, path);
  return within(path, () => read(there));
}

export function each<T, R>(path: string, items: readonly T[], read: (item: T, index: number) => R): R[] {
  const done: R[] = [];
  try {
    for (const item of items) done.push(read(item, done.length));
  } catch (error) {
    throw withPath(`${path}[${done.length}]`, error);
  }
  return done;
}

function withPath(path: string, error: unknown): unknown {
  const inner = isFault(error, "invalid") ? error.facts["path"] : undefined;
  if (!isFault(error) || inner === undefined) return error;
  return new Fault("invalid", error.doing, { ...error.facts, path: `${path}.${inner}` });
}

/**
 * The kernel's words as numbers of the work protocol and back, and what is said when a message makes no sense.
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

type Words<W extends string> = {
  /** 0, "unspecified", for a word that is none: whoever receives it says where it stands. */
  numberOf(word: W): number;
  wordOf(number: number): W | undefined;
};

function words<W extends string>(numbers: Readonly<Record<W, number>>): Words<W> {
  const byNumber: (W | undefined)[] = [];
  for (const [word, number] of Object.entries(numbers)) byNumber[number as number] = word as W;
  return {
    numberOf: (word) => (Object.hasOwn(numbers, word) ? numbers[word] : 0),
    wordOf: (number) => byNumber[number],
  };
}

export const jobPhases = words<JobPhaseWord>({
  WAITING: JobPhase.JOB_PHASE_WAITING,
  RUNNING: JobPhase.JOB_PHASE_RUNNING,
  CANCELLING: JobPhase.JOB_PHASE_CANCELLING,
  SUCCEEDED: JobPhase.JOB_PHASE_SUCCEEDED,
  FAILED: JobPhase.JOB_PHASE_FAILED,
  CANCELLED: JobPhase.JOB_PHASE_CANCELLED,
});

export const stagePhases = words<StagePhaseWord>({
  BLOCKED: StagePhase.STAGE_PHASE_BLOCKED,
  READY: StagePhase.STAGE_PHASE_READY,
  RUNNING: StagePhase.STAGE_PHASE_RUNNING,
  COMPLETED: StagePhase.STAGE_PHASE_COMPLETED,
  FAILED: StagePhase.STAGE_PHASE_FAILED,
  SKIPPED: StagePhase.STAGE_PHASE_SKIPPED,
  CANCELLED: StagePhase.STAGE_PHASE_CANCELLED,
});

export const taskPhases = words<TaskPhaseWord>({
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

export const failReasons = words<FailReasonWord>({
  "executor-lost": FailReason.FAIL_REASON_EXECUTOR_LOST,
  preempted: FailReason.FAIL_REASON_PREEMPTED,
  "timed-out": FailReason.FAIL_REASON_TIMED_OUT,
  "out-of-memory": FailReason.FAIL_REASON_OUT_OF_MEMORY,
  "input-lost": FailReason.FAIL_REASON_INPUT_LOST,
  "user-failure": FailReason.FAIL_REASON_USER_FAILURE,
  cancelled: FailReason.FAIL_REASON_CANCELLED,
});

export const retryOns = words<TaskTemplate["retryOn"]>({
  infrastructure: RetryOn.RETRY_ON_INFRASTRUCTURE,
  any: RetryOn.RETRY_ON_ANY,
});

export const effects = words<TaskTemplate["effects"]>({
  pure: Effects.EFFECTS_PURE,
  outside: Effects.EFFECTS_OUTSIDE,
});

export const afters = words<StageSpec["after"]>({ success: After.AFTER_SUCCESS, end: After.AFTER_END });

export const stepStatuses = words<StepStatusWord>({
  started: StepStatus.STEP_STATUS_STARTED,
  succeeded: StepStatus.STEP_STATUS_SUCCEEDED,
  failed: StepStatus.STEP_STATUS_FAILED,
  skipped: StepStatus.STEP_STATUS_SKIPPED,
  progress: StepStatus.STEP_STATUS_PROGRESS,
});

export const planKinds = words<Plan["kind"]>({
  tasks: PlanKind.PLAN_KIND_TASKS,
  skip: PlanKind.PLAN_KIND_SKIP,
  fail: PlanKind.PLAN_KIND_FAIL,
  wait: PlanKind.PLAN_KIND_WAIT,
});

/** `path` leads to the field, in the names that protobuf's JSON has. */
export function refuse(path: string, why: string): never {
  throw new Fault("invalid", "read message", { path, why });
}

/** For `wordOf`: `wordOf(number) ?? noSuch("after")`. */
export const noSuch = (path: string): never => refuse(path, "must be one of the values of its type, and not 0");

export const must = <T>(value: T | undefined, path: string): T => value ?? refuse(path, "must be there");

/** Reads a part; what is wrong with it is told of the whole. Paths are put together only when there is need of them. */
export function within<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw told(path, error);
  }
}

/** Reads a part that must be there. */
export function readPart<W, K>(path: string, part: W | undefined, read: (part: W) => K): K {
  const there = must(part, path);
  return within(path, () => read(there));
}

export function each<T, R>(path: string, items: readonly T[], read: (item: T, index: number) => R): R[] {
  const done: R[] = [];
  try {
    for (const item of items) done.push(read(item, done.length));
  } catch (error) {
    throw told(`${path}[${done.length}]`, error);
  }
  return done;
}

function told(path: string, error: unknown): unknown {
  const inner = isFault(error, "invalid") ? error.facts["path"] : undefined;
  if (!isFault(error) || inner === undefined) return error;
  return new Fault("invalid", error.doing, { ...error.facts, path: `${path}.${inner}` });
}

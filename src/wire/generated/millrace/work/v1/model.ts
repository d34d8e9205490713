// Generated from proto/millrace/work/v1/model.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";

/** Where a job is in its life. */
export const JobPhase = {
  /** Never sent. */
  JOB_PHASE_UNSPECIFIED: 0,
  /** Nothing of it has begun. */
  JOB_PHASE_WAITING: 1,
  /** Something of it has begun. */
  JOB_PHASE_RUNNING: 2,
  /** It is to stop, and something still runs. */
  JOB_PHASE_CANCELLING: 3,
  /** It ended well. */
  JOB_PHASE_SUCCEEDED: 4,
  /** It ended badly. */
  JOB_PHASE_FAILED: 5,
  /** It was stopped. */
  JOB_PHASE_CANCELLED: 6,
} as const;

/** Where a stage is in its life. */
export const StagePhase = {
  /** Never sent. */
  STAGE_PHASE_UNSPECIFIED: 0,
  /** It waits for other stages, or for a lock. */
  STAGE_PHASE_BLOCKED: 1,
  /** Nothing stands in its way. */
  STAGE_PHASE_READY: 2,
  /** Its tasks are known and being done. */
  STAGE_PHASE_RUNNING: 3,
  /** All its tasks have results. */
  STAGE_PHASE_COMPLETED: 4,
  /** It ended badly. */
  STAGE_PHASE_FAILED: 5,
  /** It was not needed, or not allowed to run. */
  STAGE_PHASE_SKIPPED: 6,
  /** It was stopped. */
  STAGE_PHASE_CANCELLED: 7,
} as const;

/** Where a task is in its life. */
export const TaskPhase = {
  /** Never sent. */
  TASK_PHASE_UNSPECIFIED: 0,
  /** It waits for an executor. */
  TASK_PHASE_READY: 1,
  /** An executor has it and has not begun. */
  TASK_PHASE_CLAIMED: 2,
  /** An executor is at it. */
  TASK_PHASE_RUNNING: 3,
  /** It failed and is tried again after a while. */
  TASK_PHASE_RETRY_PENDING: 4,
  /** For planning only: the planner asked to be woken by a time or a signal. */
  TASK_PHASE_WAITING: 5,
  /** It is to stop, and an executor still has it. */
  TASK_PHASE_CANCELLING: 6,
  /** It has a result. */
  TASK_PHASE_SUCCEEDED: 7,
  /** It failed for good. */
  TASK_PHASE_FAILED: 8,
  /** It was stopped. */
  TASK_PHASE_CANCELLED: 9,
} as const;

/** Why an attempt ended without a result. What may be tried again depends on it. */
export const FailReason = {
  /** Not allowed: say why. */
  FAIL_REASON_UNSPECIFIED: 0,
  /** The executor is gone. */
  FAIL_REASON_EXECUTOR_LOST: 1,
  /** The executor's machine was wanted for something else. */
  FAIL_REASON_PREEMPTED: 2,
  /** The attempt took too long. */
  FAIL_REASON_TIMED_OUT: 3,
  /** Memory ran out. */
  FAIL_REASON_OUT_OF_MEMORY: 4,
  /** A blob that the task needs is gone. */
  FAIL_REASON_INPUT_LOST: 5,
  /** The work itself failed: its own fault. */
  FAIL_REASON_USER_FAILURE: 6,
  /** It was stopped on request. */
  FAIL_REASON_CANCELLED: 7,
} as const;

/** Which failures are worth another attempt. */
export const RetryOn = {
  /** Not allowed: choose. */
  RETRY_ON_UNSPECIFIED: 0,
  /** Those that are not the work's own fault. */
  RETRY_ON_INFRASTRUCTURE: 1,
  /** All. */
  RETRY_ON_ANY: 2,
} as const;

/** Whether a task changes the world. */
export const Effects = {
  /** Not allowed: choose. */
  EFFECTS_UNSPECIFIED: 0,
  /** Nothing but its result comes of it: it may run twice. */
  EFFECTS_PURE: 1,
  /** It changes the world: never two attempts at once, and no grace after a lost lease. */
  EFFECTS_OUTSIDE: 2,
} as const;

/** When a stage is made ready. */
export const After = {
  /** Not allowed: choose. */
  AFTER_UNSPECIFIED: 0,
  /** When all its needs completed; otherwise it is skipped. */
  AFTER_SUCCESS: 1,
  /** When all its needs have ended, however. */
  AFTER_END: 2,
} as const;

/** How a step of a task stands. */
export const StepStatus = {
  /** Not allowed: choose. */
  STEP_STATUS_UNSPECIFIED: 0,
  /** It has begun. */
  STEP_STATUS_STARTED: 1,
  /** It ended well. */
  STEP_STATUS_SUCCEEDED: 2,
  /** It ended badly. */
  STEP_STATUS_FAILED: 3,
  /** It was left out. */
  STEP_STATUS_SKIPPED: 4,
  /** It goes on. */
  STEP_STATUS_PROGRESS: 5,
} as const;

/** The ways in which a planner can answer. */
export const PlanKind = {
  /** Never sent. */
  PLAN_KIND_UNSPECIFIED: 0,
  /** The stage has these tasks. */
  PLAN_KIND_TASKS: 1,
  /** The stage is not needed. */
  PLAN_KIND_SKIP: 2,
  /** The stage cannot be done. */
  PLAN_KIND_FAIL: 3,
  /** Ask again later. */
  PLAN_KIND_WAIT: 4,
} as const;

/** How fresh an answer is. An answer that is older than one already seen from the shard is to be dropped. */
export type Stamp = {
  /** Grows with every change of the shard's owner. */
  readonly epoch: number;
  /** The shard's newest durable batch when the answer was given. */
  readonly seq: number;
};

export const Stamp: Message<Stamp> = {
  typeName: "millrace.work.v1.Stamp",
  write(message, to) {
    if (message.epoch !== 0) {
      to.int64(8, message.epoch);
    }
    if (message.seq !== 0) {
      to.int64(16, message.seq);
    }
  },
  read(from, end, before) {
    let epoch = before === undefined ? 0 : before.epoch;
    let seq = before === undefined ? 0 : before.seq;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          epoch = from.int64();
          break;
        }
        case 16: {
          seq = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { epoch, seq };
  },
};

/** What all tasks of one stage share. */
export type TaskTemplate = {
  /** Tells the executor which part of it runs the task. */
  readonly kind: string;
  /** Labels (`name=value`) that an executor must all offer; sorted, without repeats. */
  readonly requires: readonly string[];
  /** How long a claim lasts without renewal. */
  readonly leaseMs: number;
  /** How many attempts there may be. */
  readonly attemptsMax: number;
  /** Which failures are worth another attempt. */
  readonly retryOn: number;
  /** The wait before the second attempt; it doubles with every further one. */
  readonly backoffMs: number;
  /** The longest such wait. */
  readonly backoffMsMax: number;
  /** The longest wait for an executor. */
  readonly queueMs: number;
  /** The longest run of one attempt. */
  readonly attemptMs: number;
  /** Whether the tasks change the world. */
  readonly effects: number;
  /** Stragglers may be attempted a second time while the first goes on. */
  readonly speculate: boolean;
  /** How long an executor that hears nothing may go on after its lease, hoping for the owner to come back. */
  readonly graceMs: number;
  /** How long an attempt that was asked to stop may take to do so; absent: ten seconds. */
  readonly stopMs?: number | undefined;
  /** How many attempts that were lost to infrastructure do not count towards attempts_max; absent: none. */
  readonly lossesMax?: number | undefined;
  /** When a second attempt is worth it, for tasks with `speculate`; absent: as the shard's limits say. */
  readonly speculation?: Speculation | undefined;
  /** Each task takes this lock before it is queued, and keeps it until it has ended. Not for arrays. */
  readonly lock?: LockSpec | undefined;
  /**
   * How many attempts that ended for a reason are followed by another; one that ended for a reason that is not here is
   * the last. None of them: retry_on decides.
   */
  readonly retries: readonly ReasonCount[];
};

export const TaskTemplate: Message<TaskTemplate> = {
  typeName: "millrace.work.v1.TaskTemplate",
  write(message, to) {
    if (message.kind !== "") {
      to.string(10, message.kind);
    }
    for (const one of message.requires) {
      to.string(18, one);
    }
    if (message.leaseMs !== 0) {
      to.int64(24, message.leaseMs);
    }
    if (message.attemptsMax !== 0) {
      to.int32(32, message.attemptsMax);
    }
    if (message.retryOn !== 0) {
      to.int32(40, message.retryOn);
    }
    if (message.backoffMs !== 0) {
      to.int64(48, message.backoffMs);
    }
    if (message.backoffMsMax !== 0) {
      to.int64(56, message.backoffMsMax);
    }
    if (message.queueMs !== 0) {
      to.int64(64, message.queueMs);
    }
    if (message.attemptMs !== 0) {
      to.int64(72, message.attemptMs);
    }
    if (message.effects !== 0) {
      to.int32(80, message.effects);
    }
    if (message.speculate) {
      to.bool(88, message.speculate);
    }
    if (message.graceMs !== 0) {
      to.int64(96, message.graceMs);
    }
    if (message.stopMs !== undefined) {
      to.int64(320, message.stopMs);
    }
    if (message.lossesMax !== undefined) {
      to.int32(328, message.lossesMax);
    }
    if (message.speculation !== undefined) {
      const start = to.open(338);
      Speculation.write(message.speculation, to);
      to.close(start);
    }
    if (message.lock !== undefined) {
      const start = to.open(346);
      LockSpec.write(message.lock, to);
      to.close(start);
    }
    for (const one of message.retries) {
      const start = to.open(354);
      ReasonCount.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let kind = before === undefined ? "" : before.kind;
    const requires: string[] = before === undefined ? [] : (before.requires as string[]);
    let leaseMs = before === undefined ? 0 : before.leaseMs;
    let attemptsMax = before === undefined ? 0 : before.attemptsMax;
    let retryOn = before === undefined ? 0 : before.retryOn;
    let backoffMs = before === undefined ? 0 : before.backoffMs;
    let backoffMsMax = before === undefined ? 0 : before.backoffMsMax;
    let queueMs = before === undefined ? 0 : before.queueMs;
    let attemptMs = before === undefined ? 0 : before.attemptMs;
    let effects = before === undefined ? 0 : before.effects;
    let speculate = before === undefined ? false : before.speculate;
    let graceMs = before === undefined ? 0 : before.graceMs;
    let stopMs = before?.stopMs;
    let lossesMax = before?.lossesMax;
    let speculation = before?.speculation;
    let lock = before?.lock;
    const retries: ReasonCount[] = before === undefined ? [] : (before.retries as ReasonCount[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          kind = from.string();
          break;
        }
        case 18: {
          from.count();
          requires.push(from.string());
          break;
        }
        case 24: {
          leaseMs = from.int64();
          break;
        }
        case 32: {
          attemptsMax = from.int32();
          break;
        }
        case 40: {
          retryOn = from.int32();
          break;
        }
        case 48: {
          backoffMs = from.int64();
          break;
        }
        case 56: {
          backoffMsMax = from.int64();
          break;
        }
        case 64: {
          queueMs = from.int64();
          break;
        }
        case 72: {
          attemptMs = from.int64();
          break;
        }
        case 80: {
          effects = from.int32();
          break;
        }
        case 88: {
          speculate = from.bool();
          break;
        }
        case 96: {
          graceMs = from.int64();
          break;
        }
        case 320: {
          stopMs = from.int64();
          break;
        }
        case 328: {
          lossesMax = from.int32();
          break;
        }
        case 338: {
          const stop = from.enter();
          speculation = Speculation.read(from, stop, speculation);
          from.leave(stop);
          break;
        }
        case 346: {
          const stop = from.enter();
          lock = LockSpec.read(from, stop, lock);
          from.leave(stop);
          break;
        }
        case 354: {
          const stop = from.enter();
          retries.push(ReasonCount.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { kind, requires, leaseMs, attemptsMax, retryOn, backoffMs, backoffMsMax, queueMs, attemptMs, effects, speculate, graceMs, stopMs, lossesMax, speculation, lock, retries };
  },
};

/** A straggler has run for longer than a multiple of the time in which a share of its siblings were done. */
export type Speculation = {
  /** The share, from 1 to 100. At least as many siblings must be done. */
  readonly percentile: number;
  /** The multiple, in percent. */
  readonly factorPercent: number;
  /** How many tasks of the stage may have a second attempt at once. */
  readonly slots: number;
};

export const Speculation: Message<Speculation> = {
  typeName: "millrace.work.v1.Speculation",
  write(message, to) {
    if (message.percentile !== 0) {
      to.int32(8, message.percentile);
    }
    if (message.factorPercent !== 0) {
      to.int32(16, message.factorPercent);
    }
    if (message.slots !== 0) {
      to.int32(24, message.slots);
    }
  },
  read(from, end, before) {
    let percentile = before === undefined ? 0 : before.percentile;
    let factorPercent = before === undefined ? 0 : before.factorPercent;
    let slots = before === undefined ? 0 : before.slots;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          percentile = from.int32();
          break;
        }
        case 16: {
          factorPercent = from.int32();
          break;
        }
        case 24: {
          slots = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { percentile, factorPercent, slots };
  },
};

/** One task as it is planned. */
export type TaskPlan = {
  /** Names the task within its stage, in every generation. */
  readonly key: string;
  /** What is to be done, in a format of the door; opaque to the shard. */
  readonly spec: string;
  /** A hint such as a digest or a host: an executor that prefers it gets this task sooner than its neighbours. */
  readonly affinity?: string | undefined;
};

export const TaskPlan: Message<TaskPlan> = {
  typeName: "millrace.work.v1.TaskPlan",
  write(message, to) {
    if (message.key !== "") {
      to.string(10, message.key);
    }
    if (message.spec !== "") {
      to.string(18, message.spec);
    }
    if (message.affinity !== undefined) {
      to.string(26, message.affinity);
    }
  },
  read(from, end, before) {
    let key = before === undefined ? "" : before.key;
    let spec = before === undefined ? "" : before.spec;
    let affinity = before?.affinity;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          key = from.string();
          break;
        }
        case 18: {
          spec = from.string();
          break;
        }
        case 26: {
          affinity = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { key, spec, affinity };
  },
};

/** Many tasks that share one spec and differ by their index, which is also their key. */
export type ArrayPlan = {
  /** How many there are, 1,000,000 at most. */
  readonly count: number;
  /** The index of the first; 0 if absent. */
  readonly first?: number | undefined;
  /** What is to be done: an executor gets it together with the index. */
  readonly spec: string;
};

export const ArrayPlan: Message<ArrayPlan> = {
  typeName: "millrace.work.v1.ArrayPlan",
  write(message, to) {
    if (message.count !== 0) {
      to.int32(8, message.count);
    }
    if (message.first !== undefined) {
      to.int64(16, message.first);
    }
    if (message.spec !== "") {
      to.string(26, message.spec);
    }
  },
  read(from, end, before) {
    let count = before === undefined ? 0 : before.count;
    let first = before?.first;
    let spec = before === undefined ? "" : before.spec;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          count = from.int32();
          break;
        }
        case 16: {
          first = from.int64();
          break;
        }
        case 26: {
          spec = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { count, first, spec };
  },
};

/** The tasks of a stage. */
export type TaskSet = {
  /** What they share. Must be there. */
  readonly template?: TaskTemplate | undefined;
  /** Each of them, unless they are an array. */
  readonly tasks: readonly TaskPlan[];
  /** The array that they are. */
  readonly array?: ArrayPlan | undefined;
};

export const TaskSet: Message<TaskSet> = {
  typeName: "millrace.work.v1.TaskSet",
  write(message, to) {
    if (message.template !== undefined) {
      const start = to.open(10);
      TaskTemplate.write(message.template, to);
      to.close(start);
    }
    for (const one of message.tasks) {
      const start = to.open(18);
      TaskPlan.write(one, to);
      to.close(start);
    }
    if (message.array !== undefined) {
      const start = to.open(482);
      ArrayPlan.write(message.array, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let template = before?.template;
    const tasks: TaskPlan[] = before === undefined ? [] : (before.tasks as TaskPlan[]);
    let array = before?.array;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          template = TaskTemplate.read(from, stop, template);
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          tasks.push(TaskPlan.read(from, stop));
          from.leave(stop);
          break;
        }
        case 482: {
          const stop = from.enter();
          array = ArrayPlan.read(from, stop, array);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { template, tasks, array };
  },
};

/** How the tasks of a stage are to be found out when its needs have ended. */
export type PlanSpec = {
  /** Tells the planner which part of it plans. */
  readonly kind: string;
  /** Labels that a planner must all offer; sorted, without repeats. */
  readonly requires: readonly string[];
  /** How long a planner's claim lasts without renewal. */
  readonly leaseMs: number;
  /** How many attempts at planning there may be. */
  readonly attemptsMax: number;
  /** From when planning is possible until a plan is recorded, with the time spent waiting for signals. */
  readonly deadlineMs: number;
};

export const PlanSpec: Message<PlanSpec> = {
  typeName: "millrace.work.v1.PlanSpec",
  write(message, to) {
    if (message.kind !== "") {
      to.string(10, message.kind);
    }
    for (const one of message.requires) {
      to.string(18, one);
    }
    if (message.leaseMs !== 0) {
      to.int64(24, message.leaseMs);
    }
    if (message.attemptsMax !== 0) {
      to.int32(32, message.attemptsMax);
    }
    if (message.deadlineMs !== 0) {
      to.int64(40, message.deadlineMs);
    }
  },
  read(from, end, before) {
    let kind = before === undefined ? "" : before.kind;
    const requires: string[] = before === undefined ? [] : (before.requires as string[]);
    let leaseMs = before === undefined ? 0 : before.leaseMs;
    let attemptsMax = before === undefined ? 0 : before.attemptsMax;
    let deadlineMs = before === undefined ? 0 : before.deadlineMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          kind = from.string();
          break;
        }
        case 18: {
          from.count();
          requires.push(from.string());
          break;
        }
        case 24: {
          leaseMs = from.int64();
          break;
        }
        case 32: {
          attemptsMax = from.int32();
          break;
        }
        case 40: {
          deadlineMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { kind, requires, leaseMs, attemptsMax, deadlineMs };
  },
};

/** A lock that jobs or stages of one tenant share by its name. */
export type LockSpec = {
  /** Its name. */
  readonly name: string;
  /** How many may hold it at once. */
  readonly limit: number;
  /** How many may wait; one more cancels the one that has waited longest. */
  readonly queueMax: number;
  /** Cancels the holders, so that the newcomer gets its turn sooner. */
  readonly cancelInProgress: boolean;
};

export const LockSpec: Message<LockSpec> = {
  typeName: "millrace.work.v1.LockSpec",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.limit !== 0) {
      to.int32(16, message.limit);
    }
    if (message.queueMax !== 0) {
      to.int32(24, message.queueMax);
    }
    if (message.cancelInProgress) {
      to.bool(32, message.cancelInProgress);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let limit = before === undefined ? 0 : before.limit;
    let queueMax = before === undefined ? 0 : before.queueMax;
    let cancelInProgress = before === undefined ? false : before.cancelInProgress;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 16: {
          limit = from.int32();
          break;
        }
        case 24: {
          queueMax = from.int32();
          break;
        }
        case 32: {
          cancelInProgress = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, limit, queueMax, cancelInProgress };
  },
};

/** One stage of a job. Exactly one of `tasks` and `plan` must be there. */
export type StageSpec = {
  /** Its name, for people. */
  readonly name: string;
  /** The stages that it waits for, by their places in the job, counted from 0. */
  readonly needs: readonly number[];
  /** When it is made ready. */
  readonly after: number;
  /** Its tasks, when they are known already. */
  readonly tasks?: TaskSet | undefined;
  /** How its tasks are to be found out, when they are not. */
  readonly plan?: PlanSpec | undefined;
  /** The first task to fail for good cancels the others. */
  readonly failFast: boolean;
  /** The job may succeed although this stage failed. */
  readonly mayFail: boolean;
  /** How many of its tasks may be queued or running at once; 0 for no limit. */
  readonly parallelMax: number;
  /** Held while the stage runs. */
  readonly lock?: LockSpec | undefined;
  /** Its results are listed in a manifest, as those of an array always are. */
  readonly manifest?: boolean | undefined;
};

export const StageSpec: Message<StageSpec> = {
  typeName: "millrace.work.v1.StageSpec",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.needs.length > 0) {
      const start = to.open(18);
      for (const one of message.needs) to.plainInt32(one);
      to.close(start);
    }
    if (message.after !== 0) {
      to.int32(24, message.after);
    }
    if (message.tasks !== undefined) {
      const start = to.open(34);
      TaskSet.write(message.tasks, to);
      to.close(start);
    }
    if (message.plan !== undefined) {
      const start = to.open(42);
      PlanSpec.write(message.plan, to);
      to.close(start);
    }
    if (message.failFast) {
      to.bool(48, message.failFast);
    }
    if (message.mayFail) {
      to.bool(56, message.mayFail);
    }
    if (message.parallelMax !== 0) {
      to.int32(64, message.parallelMax);
    }
    if (message.lock !== undefined) {
      const start = to.open(74);
      LockSpec.write(message.lock, to);
      to.close(start);
    }
    if (message.manifest !== undefined) {
      to.bool(480, message.manifest);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    const needs: number[] = before === undefined ? [] : (before.needs as number[]);
    let after = before === undefined ? 0 : before.after;
    let tasks = before?.tasks;
    let plan = before?.plan;
    let failFast = before === undefined ? false : before.failFast;
    let mayFail = before === undefined ? false : before.mayFail;
    let parallelMax = before === undefined ? 0 : before.parallelMax;
    let lock = before?.lock;
    let manifest = before?.manifest;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          const stop = from.enter();
          while (from.pos < stop) {
            from.count();
            needs.push(from.int32());
          }
          from.leave(stop);
          break;
        }
        case 16: {
          from.count();
          needs.push(from.int32());
          break;
        }
        case 24: {
          after = from.int32();
          break;
        }
        case 34: {
          const stop = from.enter();
          tasks = TaskSet.read(from, stop, tasks);
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          plan = PlanSpec.read(from, stop, plan);
          from.leave(stop);
          break;
        }
        case 48: {
          failFast = from.bool();
          break;
        }
        case 56: {
          mayFail = from.bool();
          break;
        }
        case 64: {
          parallelMax = from.int32();
          break;
        }
        case 74: {
          const stop = from.enter();
          lock = LockSpec.read(from, stop, lock);
          from.leave(stop);
          break;
        }
        case 480: {
          manifest = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, needs, after, tasks, plan, failFast, mayFail, parallelMax, lock, manifest };
  },
};

/** What came of a task. */
export type Result = {
  /** What the door wants to remember of it; opaque to the shard. */
  readonly payload: string;
  /** The blobs that it names, `<hash>/<size>` or `<function>:<hash>/<size>`. They must be in the store. */
  readonly digests: readonly string[];
  /**
   * What is to be published once the result is committed, in a format of the door, 2 KiB at most. The owner of
   * the shard publishes it, and the job does not succeed before. In a Reuse it has no effect.
   */
  readonly publish?: string | undefined;
};

export const Result: Message<Result> = {
  typeName: "millrace.work.v1.Result",
  write(message, to) {
    if (message.payload !== "") {
      to.string(10, message.payload);
    }
    for (const one of message.digests) {
      to.string(18, one);
    }
    if (message.publish !== undefined) {
      to.string(26, message.publish);
    }
  },
  read(from, end, before) {
    let payload = before === undefined ? "" : before.payload;
    const digests: string[] = before === undefined ? [] : (before.digests as string[]);
    let publish = before?.publish;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          payload = from.string();
          break;
        }
        case 18: {
          from.count();
          digests.push(from.string());
          break;
        }
        case 26: {
          publish = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { payload, digests, publish };
  },
};

/** What an attempt has got so far, from which the next attempt of the task may go on. */
export type Checkpoint = {
  /** What the door wants to remember of it; opaque to the shard. */
  readonly payload: string;
  /** The blobs that it names, as in a Result. They must be in the store. */
  readonly digests: readonly string[];
  /** In a Grant: the token of the attempt that recorded it. */
  readonly token: number;
};

export const Checkpoint: Message<Checkpoint> = {
  typeName: "millrace.work.v1.Checkpoint",
  write(message, to) {
    if (message.payload !== "") {
      to.string(10, message.payload);
    }
    for (const one of message.digests) {
      to.string(18, one);
    }
    if (message.token !== 0) {
      to.int64(24, message.token);
    }
  },
  read(from, end, before) {
    let payload = before === undefined ? "" : before.payload;
    const digests: string[] = before === undefined ? [] : (before.digests as string[]);
    let token = before === undefined ? 0 : before.token;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          payload = from.string();
          break;
        }
        case 18: {
          from.count();
          digests.push(from.string());
          break;
        }
        case 24: {
          token = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { payload, digests, token };
  },
};

/** A result of an earlier job that a re-run may take over where stage, key and spec are the same. */
export type Reuse = {
  /** The name of the stage. */
  readonly stage: string;
  /** The key of the task. */
  readonly key: string;
  /** The spec of the task. */
  readonly spec: string;
  /** The result. Must be there. */
  readonly result?: Result | undefined;
};

export const Reuse: Message<Reuse> = {
  typeName: "millrace.work.v1.Reuse",
  write(message, to) {
    if (message.stage !== "") {
      to.string(10, message.stage);
    }
    if (message.key !== "") {
      to.string(18, message.key);
    }
    if (message.spec !== "") {
      to.string(26, message.spec);
    }
    if (message.result !== undefined) {
      const start = to.open(34);
      Result.write(message.result, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stage = before === undefined ? "" : before.stage;
    let key = before === undefined ? "" : before.key;
    let spec = before === undefined ? "" : before.spec;
    let result = before?.result;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          stage = from.string();
          break;
        }
        case 18: {
          key = from.string();
          break;
        }
        case 26: {
          spec = from.string();
          break;
        }
        case 34: {
          const stop = from.enter();
          result = Result.read(from, stop, result);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stage, key, spec, result };
  },
};

/** Several sets of tasks, each with a template of its own. Keys are unique over all of them. */
export type TaskSets = {
  /** Each of them; at least one. */
  readonly sets: readonly TaskSet[];
};

export const TaskSets: Message<TaskSets> = {
  typeName: "millrace.work.v1.TaskSets",
  write(message, to) {
    for (const one of message.sets) {
      const start = to.open(10);
      TaskSet.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    const sets: TaskSet[] = before === undefined ? [] : (before.sets as TaskSet[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          sets.push(TaskSet.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { sets };
  },
};

/** What a plan decides about its stage. What is absent stays as the stage's spec says. */
export type PlanDecides = {
  /** Taken when the plan is recorded, before the tasks are queued. Only where the stage's spec has none. */
  readonly lock?: LockSpec | undefined;
  /** The first task to fail for good cancels the others. */
  readonly failFast?: boolean | undefined;
  /** The job may succeed although this stage failed. */
  readonly mayFail?: boolean | undefined;
  /** How many of its tasks may be queued or running at once; 0 for no limit. */
  readonly parallelMax?: number | undefined;
};

export const PlanDecides: Message<PlanDecides> = {
  typeName: "millrace.work.v1.PlanDecides",
  write(message, to) {
    if (message.lock !== undefined) {
      const start = to.open(10);
      LockSpec.write(message.lock, to);
      to.close(start);
    }
    if (message.failFast !== undefined) {
      to.bool(16, message.failFast);
    }
    if (message.mayFail !== undefined) {
      to.bool(24, message.mayFail);
    }
    if (message.parallelMax !== undefined) {
      to.int32(32, message.parallelMax);
    }
  },
  read(from, end, before) {
    let lock = before?.lock;
    let failFast = before?.failFast;
    let mayFail = before?.mayFail;
    let parallelMax = before?.parallelMax;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          lock = LockSpec.read(from, stop, lock);
          from.leave(stop);
          break;
        }
        case 16: {
          failFast = from.bool();
          break;
        }
        case 24: {
          mayFail = from.bool();
          break;
        }
        case 32: {
          parallelMax = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { lock, failFast, mayFail, parallelMax };
  },
};

/** A planner's answer. */
export type Plan = {
  /** Must be there. */
  readonly plan?:
    /** The stage has these tasks. */
    | { readonly kind: "tasks"; readonly value: TaskSet }
    /** The stage is not needed. */
    | { readonly kind: "skip"; readonly value: Plan_Skip }
    /** The stage cannot be done. */
    | { readonly kind: "fail"; readonly value: Plan_Fail }
    /** Ask again later. */
    | { readonly kind: "wait"; readonly value: Plan_Wait }
    /** The stage has these tasks. A shard that does not know this field refuses the plan. */
    | { readonly kind: "sets"; readonly value: TaskSets }
    | undefined;
  /** Only with `sets`. */
  readonly decides?: PlanDecides | undefined;
};

export const Plan: Message<Plan> = {
  typeName: "millrace.work.v1.Plan",
  write(message, to) {
    switch (message.plan?.kind) {
      case "tasks": {
        const start = to.open(10);
        TaskSet.write(message.plan.value, to);
        to.close(start);
        break;
      }
      case "skip": {
        const start = to.open(18);
        Plan_Skip.write(message.plan.value, to);
        to.close(start);
        break;
      }
      case "fail": {
        const start = to.open(26);
        Plan_Fail.write(message.plan.value, to);
        to.close(start);
        break;
      }
      case "wait": {
        const start = to.open(34);
        Plan_Wait.write(message.plan.value, to);
        to.close(start);
        break;
      }
      case "sets": {
        const start = to.open(322);
        TaskSets.write(message.plan.value, to);
        to.close(start);
        break;
      }
    }
    if (message.decides !== undefined) {
      const start = to.open(330);
      PlanDecides.write(message.decides, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let plan = before?.plan;
    let decides = before?.decides;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          plan = { kind: "tasks", value: TaskSet.read(from, stop, plan?.kind === "tasks" ? plan.value : undefined) };
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          plan = { kind: "skip", value: Plan_Skip.read(from, stop, plan?.kind === "skip" ? plan.value : undefined) };
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          plan = { kind: "fail", value: Plan_Fail.read(from, stop, plan?.kind === "fail" ? plan.value : undefined) };
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          plan = { kind: "wait", value: Plan_Wait.read(from, stop, plan?.kind === "wait" ? plan.value : undefined) };
          from.leave(stop);
          break;
        }
        case 322: {
          const stop = from.enter();
          plan = { kind: "sets", value: TaskSets.read(from, stop, plan?.kind === "sets" ? plan.value : undefined) };
          from.leave(stop);
          break;
        }
        case 330: {
          const stop = from.enter();
          decides = PlanDecides.read(from, stop, decides);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { plan, decides };
  },
};

/** The stage is not needed. */
export type Plan_Skip = {
  /** Why. */
  readonly reason: string;
};

export const Plan_Skip: Message<Plan_Skip> = {
  typeName: "millrace.work.v1.Plan.Skip",
  write(message, to) {
    if (message.reason !== "") {
      to.string(10, message.reason);
    }
  },
  read(from, end, before) {
    let reason = before === undefined ? "" : before.reason;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          reason = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { reason };
  },
};

/** The stage cannot be done. */
export type Plan_Fail = {
  /** Why. */
  readonly reason: string;
};

export const Plan_Fail: Message<Plan_Fail> = {
  typeName: "millrace.work.v1.Plan.Fail",
  write(message, to) {
    if (message.reason !== "") {
      to.string(10, message.reason);
    }
  },
  read(from, end, before) {
    let reason = before === undefined ? "" : before.reason;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          reason = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { reason };
  },
};

/** The planner is to be asked again. */
export type Plan_Wait = {
  /** After this time at the latest. */
  readonly forMs: number;
  /** Or when a signal of one of these names comes. */
  readonly signals: readonly string[];
};

export const Plan_Wait: Message<Plan_Wait> = {
  typeName: "millrace.work.v1.Plan.Wait",
  write(message, to) {
    if (message.forMs !== 0) {
      to.int64(8, message.forMs);
    }
    for (const one of message.signals) {
      to.string(18, one);
    }
  },
  read(from, end, before) {
    let forMs = before === undefined ? 0 : before.forMs;
    const signals: string[] = before === undefined ? [] : (before.signals as string[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          forMs = from.int64();
          break;
        }
        case 18: {
          from.count();
          signals.push(from.string());
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { forMs, signals };
  },
};

/** A fact that jobs are found by. */
export type Tag = {
  /** Letters, digits and . _ / - only. At most 64 characters. */
  readonly name: string;
  /** At most 256 characters. */
  readonly value: string;
};

export const Tag: Message<Tag> = {
  typeName: "millrace.work.v1.Tag",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.value !== "") {
      to.string(18, message.value);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let value = before === undefined ? "" : before.value;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 18: {
          value = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, value };
  },
};

/** Where the end of a job is to be told. */
export type Notice = {
  /** The shard of the job that is told. */
  readonly shard: number;
  /** That job; of the same tenant. */
  readonly job: number;
  /** The place of its stage that gets the signal. */
  readonly stage: number;
  /** The signal is "ended:" and this name. At most 200 characters. */
  readonly name: string;
};

export const Notice: Message<Notice> = {
  typeName: "millrace.work.v1.Notice",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.job !== 0) {
      to.int64(16, message.job);
    }
    if (message.stage !== 0) {
      to.int32(24, message.stage);
    }
    if (message.name !== "") {
      to.string(34, message.name);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let job = before === undefined ? 0 : before.job;
    let stage = before === undefined ? 0 : before.stage;
    let name = before === undefined ? "" : before.name;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 16: {
          job = from.int64();
          break;
        }
        case 24: {
          stage = from.int32();
          break;
        }
        case 34: {
          name = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, job, stage, name };
  },
};

/** The number that a job took of a series. */
export type SeriesNumber = {
  /** The series, within tenant, door and shard. */
  readonly name: string;
  /** Counts from 1; no other job has it. */
  readonly number: number;
};

export const SeriesNumber: Message<SeriesNumber> = {
  typeName: "millrace.work.v1.SeriesNumber",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.number !== 0) {
      to.int64(16, message.number);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    let number = before === undefined ? 0 : before.number;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          name = from.string();
          break;
        }
        case 16: {
          number = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, number };
  },
};

/** News for a stage that is being planned, such as an approval. */
export type Signal = {
  /** Names it: the same signal said twice is recorded once. */
  readonly id: string;
  /** What planners wait for. */
  readonly name: string;
  /** Opaque to the shard. */
  readonly payload: string;
  /** Who sent it: the authenticated caller. What a caller puts here is replaced. */
  readonly by?: string | undefined;
  /** When it was recorded, in milliseconds since 1970. Set by the shard. */
  readonly atMs?: number | undefined;
  /** Its number among the stage's signals, counted from 1. Only in a HeldClaim. */
  readonly number?: number | undefined;
};

export const Signal: Message<Signal> = {
  typeName: "millrace.work.v1.Signal",
  write(message, to) {
    if (message.id !== "") {
      to.string(10, message.id);
    }
    if (message.name !== "") {
      to.string(18, message.name);
    }
    if (message.payload !== "") {
      to.string(26, message.payload);
    }
    if (message.by !== undefined) {
      to.string(322, message.by);
    }
    if (message.atMs !== undefined) {
      to.int64(328, message.atMs);
    }
    if (message.number !== undefined) {
      to.int64(336, message.number);
    }
  },
  read(from, end, before) {
    let id = before === undefined ? "" : before.id;
    let name = before === undefined ? "" : before.name;
    let payload = before === undefined ? "" : before.payload;
    let by = before?.by;
    let atMs = before?.atMs;
    let number = before?.number;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          id = from.string();
          break;
        }
        case 18: {
          name = from.string();
          break;
        }
        case 26: {
          payload = from.string();
          break;
        }
        case 322: {
          by = from.string();
          break;
        }
        case 328: {
          atMs = from.int64();
          break;
        }
        case 336: {
          number = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { id, name, payload, by, atMs, number };
  },
};

/** How far a task has got. */
export type Step = {
  /** Its number. */
  readonly step: number;
  /** Its name, for people. */
  readonly name: string;
  /** How it stands. */
  readonly status: number;
};

export const Step: Message<Step> = {
  typeName: "millrace.work.v1.Step",
  write(message, to) {
    if (message.step !== 0) {
      to.int32(8, message.step);
    }
    if (message.name !== "") {
      to.string(18, message.name);
    }
    if (message.status !== 0) {
      to.int32(24, message.status);
    }
  },
  read(from, end, before) {
    let step = before === undefined ? 0 : before.step;
    let name = before === undefined ? "" : before.name;
    let status = before === undefined ? 0 : before.status;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          step = from.int32();
          break;
        }
        case 18: {
          name = from.string();
          break;
        }
        case 24: {
          status = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { step, name, status };
  },
};

/** A claim on a task. */
export type Claim = {
  /** The task. */
  readonly task: number;
  /** Grows with every grant: only the newest counts. */
  readonly token: number;
  /** In a Renew: acknowledges the signals up to this number, so that they are not sent again. */
  readonly heard?: number | undefined;
};

export const Claim: Message<Claim> = {
  typeName: "millrace.work.v1.Claim",
  write(message, to) {
    if (message.task !== 0) {
      to.int64(8, message.task);
    }
    if (message.token !== 0) {
      to.int64(16, message.token);
    }
    if (message.heard !== undefined) {
      to.int64(320, message.heard);
    }
  },
  read(from, end, before) {
    let task = before === undefined ? 0 : before.task;
    let token = before === undefined ? 0 : before.token;
    let heard = before?.heard;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          task = from.int64();
          break;
        }
        case 16: {
          token = from.int64();
          break;
        }
        case 320: {
          heard = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { task, token, heard };
  },
};

/** A claim as an executor is handed it: all it needs to begin. */
export type Grant = {
  /** The task. */
  readonly task: number;
  /** To be given with everything that is said of the task. */
  readonly token: number;
  /** The task's job. */
  readonly job: number;
  /** The place of its stage in the job. */
  readonly stage: number;
  /** The name of its stage. */
  readonly stageName: string;
  /** Whose job it is. */
  readonly tenant: string;
  /** The dialect that the spec is written in. */
  readonly door: string;
  /** Tells the executor which part of it runs the task. */
  readonly kind: string;
  /** The task's name within its stage. */
  readonly key: string;
  /** What is to be done. */
  readonly spec: string;
  /** The work is to say what the stage's tasks are: answer with RecordPlan, not with Commit. */
  readonly planning: boolean;
  /** How often the stage was opened. */
  readonly generation: number;
  /** Which attempt at the task this is, counted from 1. */
  readonly attempt: number;
  /** How long the claim lasts without renewal. */
  readonly leaseMs: number;
  /** How long to go on after that when no owner can be reached. */
  readonly graceMs: number;
  /** The longest run. */
  readonly attemptMs: number;
  /** Whether the task changes the world. */
  readonly effects: number;
  /** How many attempts at the task ran out of memory. Absent from a node of an older version, which does not count them. */
  readonly outOfMemory?: number | undefined;
  /** The trace that the job was submitted with. Absent from a node of an older version. */
  readonly trace?: string | undefined;
  /** How long the attempt has to stop when it is asked to; absent: as long as the executor gives it. */
  readonly stopMs?: number | undefined;
  /** The last checkpoint that an earlier attempt at the task recorded. */
  readonly checkpoint?: Checkpoint | undefined;
  /** How many attempts at the task failed, by reason. */
  readonly failures: readonly ReasonCount[];
  /** The task's index, if it is one of an array. */
  readonly index?: number | undefined;
  /** The manifests of the stages that its stage needs, for those that have one. */
  readonly manifests: readonly Grant_Need[];
};

export const Grant: Message<Grant> = {
  typeName: "millrace.work.v1.Grant",
  write(message, to) {
    if (message.task !== 0) {
      to.int64(8, message.task);
    }
    if (message.token !== 0) {
      to.int64(16, message.token);
    }
    if (message.job !== 0) {
      to.int64(24, message.job);
    }
    if (message.stage !== 0) {
      to.int32(32, message.stage);
    }
    if (message.stageName !== "") {
      to.string(42, message.stageName);
    }
    if (message.tenant !== "") {
      to.string(50, message.tenant);
    }
    if (message.door !== "") {
      to.string(58, message.door);
    }
    if (message.kind !== "") {
      to.string(66, message.kind);
    }
    if (message.key !== "") {
      to.string(74, message.key);
    }
    if (message.spec !== "") {
      to.string(82, message.spec);
    }
    if (message.planning) {
      to.bool(88, message.planning);
    }
    if (message.generation !== 0) {
      to.int32(96, message.generation);
    }
    if (message.attempt !== 0) {
      to.int32(104, message.attempt);
    }
    if (message.leaseMs !== 0) {
      to.int64(112, message.leaseMs);
    }
    if (message.graceMs !== 0) {
      to.int64(120, message.graceMs);
    }
    if (message.attemptMs !== 0) {
      to.int64(128, message.attemptMs);
    }
    if (message.effects !== 0) {
      to.int32(136, message.effects);
    }
    if (message.outOfMemory !== undefined) {
      to.int32(144, message.outOfMemory);
    }
    if (message.trace !== undefined) {
      to.string(154, message.trace);
    }
    if (message.stopMs !== undefined) {
      to.int64(320, message.stopMs);
    }
    if (message.checkpoint !== undefined) {
      const start = to.open(330);
      Checkpoint.write(message.checkpoint, to);
      to.close(start);
    }
    for (const one of message.failures) {
      const start = to.open(338);
      ReasonCount.write(one, to);
      to.close(start);
    }
    if (message.index !== undefined) {
      to.int64(480, message.index);
    }
    for (const one of message.manifests) {
      const start = to.open(490);
      Grant_Need.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let task = before === undefined ? 0 : before.task;
    let token = before === undefined ? 0 : before.token;
    let job = before === undefined ? 0 : before.job;
    let stage = before === undefined ? 0 : before.stage;
    let stageName = before === undefined ? "" : before.stageName;
    let tenant = before === undefined ? "" : before.tenant;
    let door = before === undefined ? "" : before.door;
    let kind = before === undefined ? "" : before.kind;
    let key = before === undefined ? "" : before.key;
    let spec = before === undefined ? "" : before.spec;
    let planning = before === undefined ? false : before.planning;
    let generation = before === undefined ? 0 : before.generation;
    let attempt = before === undefined ? 0 : before.attempt;
    let leaseMs = before === undefined ? 0 : before.leaseMs;
    let graceMs = before === undefined ? 0 : before.graceMs;
    let attemptMs = before === undefined ? 0 : before.attemptMs;
    let effects = before === undefined ? 0 : before.effects;
    let outOfMemory = before?.outOfMemory;
    let trace = before?.trace;
    let stopMs = before?.stopMs;
    let checkpoint = before?.checkpoint;
    const failures: ReasonCount[] = before === undefined ? [] : (before.failures as ReasonCount[]);
    let index = before?.index;
    const manifests: Grant_Need[] = before === undefined ? [] : (before.manifests as Grant_Need[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          task = from.int64();
          break;
        }
        case 16: {
          token = from.int64();
          break;
        }
        case 24: {
          job = from.int64();
          break;
        }
        case 32: {
          stage = from.int32();
          break;
        }
        case 42: {
          stageName = from.string();
          break;
        }
        case 50: {
          tenant = from.string();
          break;
        }
        case 58: {
          door = from.string();
          break;
        }
        case 66: {
          kind = from.string();
          break;
        }
        case 74: {
          key = from.string();
          break;
        }
        case 82: {
          spec = from.string();
          break;
        }
        case 88: {
          planning = from.bool();
          break;
        }
        case 96: {
          generation = from.int32();
          break;
        }
        case 104: {
          attempt = from.int32();
          break;
        }
        case 112: {
          leaseMs = from.int64();
          break;
        }
        case 120: {
          graceMs = from.int64();
          break;
        }
        case 128: {
          attemptMs = from.int64();
          break;
        }
        case 136: {
          effects = from.int32();
          break;
        }
        case 144: {
          outOfMemory = from.int32();
          break;
        }
        case 154: {
          trace = from.string();
          break;
        }
        case 320: {
          stopMs = from.int64();
          break;
        }
        case 330: {
          const stop = from.enter();
          checkpoint = Checkpoint.read(from, stop, checkpoint);
          from.leave(stop);
          break;
        }
        case 338: {
          const stop = from.enter();
          failures.push(ReasonCount.read(from, stop));
          from.leave(stop);
          break;
        }
        case 480: {
          index = from.int64();
          break;
        }
        case 490: {
          const stop = from.enter();
          manifests.push(Grant_Need.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { task, token, job, stage, stageName, tenant, door, kind, key, spec, planning, generation, attempt, leaseMs, graceMs, attemptMs, effects, outOfMemory, trace, stopMs, checkpoint, failures, index, manifests };
  },
};

/** The manifest of a stage that the task's stage needs. */
export type Grant_Need = {
  /** The name of that stage. */
  readonly stage: string;
  /** How often it was opened. */
  readonly generation: number;
  /** The blob that lists its results. */
  readonly digest: string;
};

export const Grant_Need: Message<Grant_Need> = {
  typeName: "millrace.work.v1.Grant.Need",
  write(message, to) {
    if (message.stage !== "") {
      to.string(10, message.stage);
    }
    if (message.generation !== 0) {
      to.int32(16, message.generation);
    }
    if (message.digest !== "") {
      to.string(26, message.digest);
    }
  },
  read(from, end, before) {
    let stage = before === undefined ? "" : before.stage;
    let generation = before === undefined ? 0 : before.generation;
    let digest = before === undefined ? "" : before.digest;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          stage = from.string();
          break;
        }
        case 16: {
          generation = from.int32();
          break;
        }
        case 26: {
          digest = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stage, generation, digest };
  },
};

/** How often something failed for a reason. */
export type ReasonCount = {
  /** The reason. */
  readonly reason: number;
  /** How often. */
  readonly count: number;
};

export const ReasonCount: Message<ReasonCount> = {
  typeName: "millrace.work.v1.ReasonCount",
  write(message, to) {
    if (message.reason !== 0) {
      to.int32(8, message.reason);
    }
    if (message.count !== 0) {
      to.int32(16, message.count);
    }
  },
  read(from, end, before) {
    let reason = before === undefined ? 0 : before.reason;
    let count = before === undefined ? 0 : before.count;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          reason = from.int32();
          break;
        }
        case 16: {
          count = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { reason, count };
  },
};

/** A claim as its executor holds it. */
export type HeldClaim = {
  /** The task. */
  readonly task: number;
  /** Its token. */
  readonly token: number;
  /** How long it lasts from now on without renewal. */
  readonly leaseMs: number;
  /** The work on it has begun. */
  readonly started: boolean;
  /** Stop now, then say Fail with FAIL_REASON_CANCELLED. */
  readonly cancelling: boolean;
  /** Signals to the task's stage that were not acknowledged, oldest first, a few at a time. */
  readonly signals: readonly Signal[];
};

export const HeldClaim: Message<HeldClaim> = {
  typeName: "millrace.work.v1.HeldClaim",
  write(message, to) {
    if (message.task !== 0) {
      to.int64(8, message.task);
    }
    if (message.token !== 0) {
      to.int64(16, message.token);
    }
    if (message.leaseMs !== 0) {
      to.int64(24, message.leaseMs);
    }
    if (message.started) {
      to.bool(32, message.started);
    }
    if (message.cancelling) {
      to.bool(40, message.cancelling);
    }
    for (const one of message.signals) {
      const start = to.open(322);
      Signal.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let task = before === undefined ? 0 : before.task;
    let token = before === undefined ? 0 : before.token;
    let leaseMs = before === undefined ? 0 : before.leaseMs;
    let started = before === undefined ? false : before.started;
    let cancelling = before === undefined ? false : before.cancelling;
    const signals: Signal[] = before === undefined ? [] : (before.signals as Signal[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          task = from.int64();
          break;
        }
        case 16: {
          token = from.int64();
          break;
        }
        case 24: {
          leaseMs = from.int64();
          break;
        }
        case 32: {
          started = from.bool();
          break;
        }
        case 40: {
          cancelling = from.bool();
          break;
        }
        case 322: {
          const stop = from.enter();
          signals.push(Signal.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { task, token, leaseMs, started, cancelling, signals };
  },
};

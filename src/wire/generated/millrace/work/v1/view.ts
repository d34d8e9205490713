// Generated from proto/millrace/work/v1/view.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";
import { ReasonCount } from "#wire/generated/millrace/work/v1/model.ts";
import { Result } from "#wire/generated/millrace/work/v1/model.ts";
import { SeriesNumber } from "#wire/generated/millrace/work/v1/model.ts";
import { Signal } from "#wire/generated/millrace/work/v1/model.ts";
import { Step } from "#wire/generated/millrace/work/v1/model.ts";
import { Tag } from "#wire/generated/millrace/work/v1/model.ts";

/** A claim as others see it. */
export type ClaimView = {
  /** Its token. */
  readonly token: number;
  /** The executor that holds it. */
  readonly executor: string;
  /** When it ends unless it is renewed; negative when it is overdue. */
  readonly expiresInMs: number;
  /** The work on it has begun. */
  readonly started: boolean;
};

export const ClaimView: Message<ClaimView> = {
  typeName: "millrace.work.v1.ClaimView",
  write(message, to) {
    if (message.token !== 0) {
      to.int64(8, message.token);
    }
    if (message.executor !== "") {
      to.string(18, message.executor);
    }
    if (message.expiresInMs !== 0) {
      to.int64(24, message.expiresInMs);
    }
    if (message.started) {
      to.bool(32, message.started);
    }
  },
  read(from, end, before) {
    let token = before === undefined ? 0 : before.token;
    let executor = before === undefined ? "" : before.executor;
    let expiresInMs = before === undefined ? 0 : before.expiresInMs;
    let started = before === undefined ? false : before.started;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          token = from.int64();
          break;
        }
        case 18: {
          executor = from.string();
          break;
        }
        case 24: {
          expiresInMs = from.int64();
          break;
        }
        case 32: {
          started = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { token, executor, expiresInMs, started };
  },
};

/** Why the last attempt failed. */
export type Failure = {
  /** Why. */
  readonly reason: number;
  /** More, for people. */
  readonly message: string;
  /** What the attempt left nevertheless. */
  readonly result?: Result | undefined;
};

export const Failure: Message<Failure> = {
  typeName: "millrace.work.v1.Failure",
  write(message, to) {
    if (message.reason !== 0) {
      to.int32(8, message.reason);
    }
    if (message.message !== "") {
      to.string(18, message.message);
    }
    if (message.result !== undefined) {
      const start = to.open(322);
      Result.write(message.result, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let reason = before === undefined ? 0 : before.reason;
    let message = before === undefined ? "" : before.message;
    let result = before?.result;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          reason = from.int32();
          break;
        }
        case 18: {
          message = from.string();
          break;
        }
        case 322: {
          const stop = from.enter();
          result = Result.read(from, stop, result);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { reason, message, result };
  },
};

/** A task. */
export type TaskView = {
  /** Its number. */
  readonly task: number;
  /** Its job. */
  readonly job: number;
  /** The place of its stage in the job. */
  readonly stage: number;
  /** Its name within its stage. */
  readonly key: string;
  /** Which part of an executor runs it. */
  readonly kind: string;
  /** Where it is in its life. */
  readonly phase: number;
  /** It says what the stage's tasks are. */
  readonly planning: boolean;
  /** How often its stage was opened. */
  readonly generation: number;
  /** How many attempts there were. */
  readonly attempts: number;
  /** Its live claims. */
  readonly claims: readonly ClaimView[];
  /** What came of it. */
  readonly result?: Result | undefined;
  /** Why its last attempt failed. */
  readonly lastFailure?: Failure | undefined;
  /** How far it has got. */
  readonly steps: readonly Step[];
  /** When it is tried again. */
  readonly retryInMs?: number | undefined;
  /** Its last checkpoint, if an attempt recorded one. */
  readonly checkpoint?: CheckpointView | undefined;
};

export const TaskView: Message<TaskView> = {
  typeName: "millrace.work.v1.TaskView",
  write(message, to) {
    if (message.task !== 0) {
      to.int64(8, message.task);
    }
    if (message.job !== 0) {
      to.int64(16, message.job);
    }
    if (message.stage !== 0) {
      to.int32(24, message.stage);
    }
    if (message.key !== "") {
      to.string(34, message.key);
    }
    if (message.kind !== "") {
      to.string(42, message.kind);
    }
    if (message.phase !== 0) {
      to.int32(48, message.phase);
    }
    if (message.planning) {
      to.bool(56, message.planning);
    }
    if (message.generation !== 0) {
      to.int32(64, message.generation);
    }
    if (message.attempts !== 0) {
      to.int32(72, message.attempts);
    }
    for (const one of message.claims) {
      const start = to.open(82);
      ClaimView.write(one, to);
      to.close(start);
    }
    if (message.result !== undefined) {
      const start = to.open(90);
      Result.write(message.result, to);
      to.close(start);
    }
    if (message.lastFailure !== undefined) {
      const start = to.open(98);
      Failure.write(message.lastFailure, to);
      to.close(start);
    }
    for (const one of message.steps) {
      const start = to.open(106);
      Step.write(one, to);
      to.close(start);
    }
    if (message.retryInMs !== undefined) {
      to.int64(112, message.retryInMs);
    }
    if (message.checkpoint !== undefined) {
      const start = to.open(322);
      CheckpointView.write(message.checkpoint, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let task = before === undefined ? 0 : before.task;
    let job = before === undefined ? 0 : before.job;
    let stage = before === undefined ? 0 : before.stage;
    let key = before === undefined ? "" : before.key;
    let kind = before === undefined ? "" : before.kind;
    let phase = before === undefined ? 0 : before.phase;
    let planning = before === undefined ? false : before.planning;
    let generation = before === undefined ? 0 : before.generation;
    let attempts = before === undefined ? 0 : before.attempts;
    const claims: ClaimView[] = before === undefined ? [] : (before.claims as ClaimView[]);
    let result = before?.result;
    let lastFailure = before?.lastFailure;
    const steps: Step[] = before === undefined ? [] : (before.steps as Step[]);
    let retryInMs = before?.retryInMs;
    let checkpoint = before?.checkpoint;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          task = from.int64();
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
          key = from.string();
          break;
        }
        case 42: {
          kind = from.string();
          break;
        }
        case 48: {
          phase = from.int32();
          break;
        }
        case 56: {
          planning = from.bool();
          break;
        }
        case 64: {
          generation = from.int32();
          break;
        }
        case 72: {
          attempts = from.int32();
          break;
        }
        case 82: {
          const stop = from.enter();
          claims.push(ClaimView.read(from, stop));
          from.leave(stop);
          break;
        }
        case 90: {
          const stop = from.enter();
          result = Result.read(from, stop, result);
          from.leave(stop);
          break;
        }
        case 98: {
          const stop = from.enter();
          lastFailure = Failure.read(from, stop, lastFailure);
          from.leave(stop);
          break;
        }
        case 106: {
          const stop = from.enter();
          steps.push(Step.read(from, stop));
          from.leave(stop);
          break;
        }
        case 112: {
          retryInMs = from.int64();
          break;
        }
        case 322: {
          const stop = from.enter();
          checkpoint = CheckpointView.read(from, stop, checkpoint);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { task, job, stage, key, kind, phase, planning, generation, attempts, claims, result, lastFailure, steps, retryInMs, checkpoint };
  },
};

/** That a task has a checkpoint. */
export type CheckpointView = {
  /** The token under which it was recorded. */
  readonly token: number;
  /** How long ago. */
  readonly agoMs: number;
};

export const CheckpointView: Message<CheckpointView> = {
  typeName: "millrace.work.v1.CheckpointView",
  write(message, to) {
    if (message.token !== 0) {
      to.int64(8, message.token);
    }
    if (message.agoMs !== 0) {
      to.int64(16, message.agoMs);
    }
  },
  read(from, end, before) {
    let token = before === undefined ? 0 : before.token;
    let agoMs = before === undefined ? 0 : before.agoMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          token = from.int64();
          break;
        }
        case 16: {
          agoMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { token, agoMs };
  },
};

/** A stage. */
export type StageView = {
  /** Its place in the job. */
  readonly stage: number;
  /** Its name. */
  readonly name: string;
  /** The places of the stages that it waits for. */
  readonly needs: readonly number[];
  /** Where it is in its life. */
  readonly phase: number;
  /** Why it has this phase, if that needs an explanation. */
  readonly reason: string;
  /** How often it was opened. */
  readonly generation: number;
  /** How many tasks it has. */
  readonly tasks: number;
  /** How many of them have a result. */
  readonly done: number;
  /** How many of them failed for good. */
  readonly failed: number;
  /** How many of them are claimed or running. */
  readonly running: number;
  /** The signals that its planner waits for. */
  readonly waitsForSignals: readonly string[];
  /** The newest signals that it received, oldest first. */
  readonly signals: readonly Signal[];
  /** Its arrays. */
  readonly arrays: readonly StageView_ArrayView[];
  /** The blob that lists its results, if there is one. */
  readonly manifest?: string | undefined;
};

export const StageView: Message<StageView> = {
  typeName: "millrace.work.v1.StageView",
  write(message, to) {
    if (message.stage !== 0) {
      to.int32(8, message.stage);
    }
    if (message.name !== "") {
      to.string(18, message.name);
    }
    if (message.needs.length > 0) {
      const start = to.open(26);
      for (const one of message.needs) to.plainInt32(one);
      to.close(start);
    }
    if (message.phase !== 0) {
      to.int32(32, message.phase);
    }
    if (message.reason !== "") {
      to.string(42, message.reason);
    }
    if (message.generation !== 0) {
      to.int32(48, message.generation);
    }
    if (message.tasks !== 0) {
      to.int32(56, message.tasks);
    }
    if (message.done !== 0) {
      to.int32(64, message.done);
    }
    if (message.failed !== 0) {
      to.int32(72, message.failed);
    }
    if (message.running !== 0) {
      to.int32(80, message.running);
    }
    for (const one of message.waitsForSignals) {
      to.string(90, one);
    }
    for (const one of message.signals) {
      const start = to.open(322);
      Signal.write(one, to);
      to.close(start);
    }
    for (const one of message.arrays) {
      const start = to.open(482);
      StageView_ArrayView.write(one, to);
      to.close(start);
    }
    if (message.manifest !== undefined) {
      to.string(490, message.manifest);
    }
  },
  read(from, end, before) {
    let stage = before === undefined ? 0 : before.stage;
    let name = before === undefined ? "" : before.name;
    const needs: number[] = before === undefined ? [] : (before.needs as number[]);
    let phase = before === undefined ? 0 : before.phase;
    let reason = before === undefined ? "" : before.reason;
    let generation = before === undefined ? 0 : before.generation;
    let tasks = before === undefined ? 0 : before.tasks;
    let done = before === undefined ? 0 : before.done;
    let failed = before === undefined ? 0 : before.failed;
    let running = before === undefined ? 0 : before.running;
    const waitsForSignals: string[] = before === undefined ? [] : (before.waitsForSignals as string[]);
    const signals: Signal[] = before === undefined ? [] : (before.signals as Signal[]);
    const arrays: StageView_ArrayView[] = before === undefined ? [] : (before.arrays as StageView_ArrayView[]);
    let manifest = before?.manifest;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          stage = from.int32();
          break;
        }
        case 18: {
          name = from.string();
          break;
        }
        case 26: {
          const stop = from.enter();
          while (from.pos < stop) {
            from.count();
            needs.push(from.int32());
          }
          from.leave(stop);
          break;
        }
        case 24: {
          from.count();
          needs.push(from.int32());
          break;
        }
        case 32: {
          phase = from.int32();
          break;
        }
        case 42: {
          reason = from.string();
          break;
        }
        case 48: {
          generation = from.int32();
          break;
        }
        case 56: {
          tasks = from.int32();
          break;
        }
        case 64: {
          done = from.int32();
          break;
        }
        case 72: {
          failed = from.int32();
          break;
        }
        case 80: {
          running = from.int32();
          break;
        }
        case 90: {
          from.count();
          waitsForSignals.push(from.string());
          break;
        }
        case 322: {
          const stop = from.enter();
          signals.push(Signal.read(from, stop));
          from.leave(stop);
          break;
        }
        case 482: {
          const stop = from.enter();
          arrays.push(StageView_ArrayView.read(from, stop));
          from.leave(stop);
          break;
        }
        case 490: {
          manifest = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stage, name, needs, phase, reason, generation, tasks, done, failed, running, waitsForSignals, signals, arrays, manifest };
  },
};

/** Tasks that share one spec. A job's view shows only those of them that are running or failed. */
export type StageView_ArrayView = {
  /** The number of its first task; the others follow. */
  readonly task: number;
  /** How many there are. */
  readonly count: number;
  /** The index of the first. */
  readonly first: number;
};

export const StageView_ArrayView: Message<StageView_ArrayView> = {
  typeName: "millrace.work.v1.StageView.ArrayView",
  write(message, to) {
    if (message.task !== 0) {
      to.int64(8, message.task);
    }
    if (message.count !== 0) {
      to.int32(16, message.count);
    }
    if (message.first !== 0) {
      to.int64(24, message.first);
    }
  },
  read(from, end, before) {
    let task = before === undefined ? 0 : before.task;
    let count = before === undefined ? 0 : before.count;
    let first = before === undefined ? 0 : before.first;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          task = from.int64();
          break;
        }
        case 16: {
          count = from.int32();
          break;
        }
        case 24: {
          first = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { task, count, first };
  },
};

/** A job with its stages and the first of its tasks. */
export type JobView = {
  /** Its number. */
  readonly job: number;
  /** Whose it is. */
  readonly tenant: string;
  /** The dialect of its specs. */
  readonly door: string;
  /** Its name, for people. */
  readonly name: string;
  /** Where it is in its life. */
  readonly phase: number;
  /** Why it has this phase, if that needs an explanation. */
  readonly reason: string;
  /** From -100 to 100; higher runs first within the tenant. */
  readonly priority: number;
  /** The job's spec, in a format of the door. */
  readonly spec: string;
  /** When it was submitted. */
  readonly submittedAtMs: number;
  /** When it ended. */
  readonly endedAtMs?: number | undefined;
  /** How many wait for it. */
  readonly subscribers: number;
  /** All its stages. */
  readonly stages: readonly StageView[];
  /** The first of its tasks. */
  readonly tasks: readonly TaskView[];
  /** What it is found by. */
  readonly tags: readonly Tag[];
  /** Its number, if it took one. */
  readonly series?: SeriesNumber | undefined;
};

export const JobView: Message<JobView> = {
  typeName: "millrace.work.v1.JobView",
  write(message, to) {
    if (message.job !== 0) {
      to.int64(8, message.job);
    }
    if (message.tenant !== "") {
      to.string(18, message.tenant);
    }
    if (message.door !== "") {
      to.string(26, message.door);
    }
    if (message.name !== "") {
      to.string(34, message.name);
    }
    if (message.phase !== 0) {
      to.int32(40, message.phase);
    }
    if (message.reason !== "") {
      to.string(50, message.reason);
    }
    if (message.priority !== 0) {
      to.int32(56, message.priority);
    }
    if (message.spec !== "") {
      to.string(66, message.spec);
    }
    if (message.submittedAtMs !== 0) {
      to.int64(72, message.submittedAtMs);
    }
    if (message.endedAtMs !== undefined) {
      to.int64(80, message.endedAtMs);
    }
    if (message.subscribers !== 0) {
      to.int32(88, message.subscribers);
    }
    for (const one of message.stages) {
      const start = to.open(98);
      StageView.write(one, to);
      to.close(start);
    }
    for (const one of message.tasks) {
      const start = to.open(106);
      TaskView.write(one, to);
      to.close(start);
    }
    for (const one of message.tags) {
      const start = to.open(562);
      Tag.write(one, to);
      to.close(start);
    }
    if (message.series !== undefined) {
      const start = to.open(570);
      SeriesNumber.write(message.series, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let job = before === undefined ? 0 : before.job;
    let tenant = before === undefined ? "" : before.tenant;
    let door = before === undefined ? "" : before.door;
    let name = before === undefined ? "" : before.name;
    let phase = before === undefined ? 0 : before.phase;
    let reason = before === undefined ? "" : before.reason;
    let priority = before === undefined ? 0 : before.priority;
    let spec = before === undefined ? "" : before.spec;
    let submittedAtMs = before === undefined ? 0 : before.submittedAtMs;
    let endedAtMs = before?.endedAtMs;
    let subscribers = before === undefined ? 0 : before.subscribers;
    const stages: StageView[] = before === undefined ? [] : (before.stages as StageView[]);
    const tasks: TaskView[] = before === undefined ? [] : (before.tasks as TaskView[]);
    const tags: Tag[] = before === undefined ? [] : (before.tags as Tag[]);
    let series = before?.series;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          job = from.int64();
          break;
        }
        case 18: {
          tenant = from.string();
          break;
        }
        case 26: {
          door = from.string();
          break;
        }
        case 34: {
          name = from.string();
          break;
        }
        case 40: {
          phase = from.int32();
          break;
        }
        case 50: {
          reason = from.string();
          break;
        }
        case 56: {
          priority = from.int32();
          break;
        }
        case 66: {
          spec = from.string();
          break;
        }
        case 72: {
          submittedAtMs = from.int64();
          break;
        }
        case 80: {
          endedAtMs = from.int64();
          break;
        }
        case 88: {
          subscribers = from.int32();
          break;
        }
        case 98: {
          const stop = from.enter();
          stages.push(StageView.read(from, stop));
          from.leave(stop);
          break;
        }
        case 106: {
          const stop = from.enter();
          tasks.push(TaskView.read(from, stop));
          from.leave(stop);
          break;
        }
        case 562: {
          const stop = from.enter();
          tags.push(Tag.read(from, stop));
          from.leave(stop);
          break;
        }
        case 570: {
          const stop = from.enter();
          series = SeriesNumber.read(from, stop, series);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { job, tenant, door, name, phase, reason, priority, spec, submittedAtMs, endedAtMs, subscribers, stages, tasks, tags, series };
  },
};

/** A job in a list. */
export type JobLine = {
  /** Its number. */
  readonly job: number;
  /** Whose it is. */
  readonly tenant: string;
  /** The dialect of its specs. */
  readonly door: string;
  /** Its name, for people. */
  readonly name: string;
  /** Where it is in its life. */
  readonly phase: number;
  /** From -100 to 100. */
  readonly priority: number;
  /** When it was submitted. */
  readonly submittedAtMs: number;
  /** When it ended. */
  readonly endedAtMs?: number | undefined;
  /** How many tasks it has. */
  readonly tasks: number;
  /** How many of them have a result. */
  readonly done: number;
  /** What it is found by. */
  readonly tags: readonly Tag[];
  /** Its number, if it took one. */
  readonly series?: SeriesNumber | undefined;
};

export const JobLine: Message<JobLine> = {
  typeName: "millrace.work.v1.JobLine",
  write(message, to) {
    if (message.job !== 0) {
      to.int64(8, message.job);
    }
    if (message.tenant !== "") {
      to.string(18, message.tenant);
    }
    if (message.door !== "") {
      to.string(26, message.door);
    }
    if (message.name !== "") {
      to.string(34, message.name);
    }
    if (message.phase !== 0) {
      to.int32(40, message.phase);
    }
    if (message.priority !== 0) {
      to.int32(48, message.priority);
    }
    if (message.submittedAtMs !== 0) {
      to.int64(56, message.submittedAtMs);
    }
    if (message.endedAtMs !== undefined) {
      to.int64(64, message.endedAtMs);
    }
    if (message.tasks !== 0) {
      to.int32(72, message.tasks);
    }
    if (message.done !== 0) {
      to.int32(80, message.done);
    }
    for (const one of message.tags) {
      const start = to.open(562);
      Tag.write(one, to);
      to.close(start);
    }
    if (message.series !== undefined) {
      const start = to.open(570);
      SeriesNumber.write(message.series, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let job = before === undefined ? 0 : before.job;
    let tenant = before === undefined ? "" : before.tenant;
    let door = before === undefined ? "" : before.door;
    let name = before === undefined ? "" : before.name;
    let phase = before === undefined ? 0 : before.phase;
    let priority = before === undefined ? 0 : before.priority;
    let submittedAtMs = before === undefined ? 0 : before.submittedAtMs;
    let endedAtMs = before?.endedAtMs;
    let tasks = before === undefined ? 0 : before.tasks;
    let done = before === undefined ? 0 : before.done;
    const tags: Tag[] = before === undefined ? [] : (before.tags as Tag[]);
    let series = before?.series;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          job = from.int64();
          break;
        }
        case 18: {
          tenant = from.string();
          break;
        }
        case 26: {
          door = from.string();
          break;
        }
        case 34: {
          name = from.string();
          break;
        }
        case 40: {
          phase = from.int32();
          break;
        }
        case 48: {
          priority = from.int32();
          break;
        }
        case 56: {
          submittedAtMs = from.int64();
          break;
        }
        case 64: {
          endedAtMs = from.int64();
          break;
        }
        case 72: {
          tasks = from.int32();
          break;
        }
        case 80: {
          done = from.int32();
          break;
        }
        case 562: {
          const stop = from.enter();
          tags.push(Tag.read(from, stop));
          from.leave(stop);
          break;
        }
        case 570: {
          const stop = from.enter();
          series = SeriesNumber.read(from, stop, series);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { job, tenant, door, name, phase, priority, submittedAtMs, endedAtMs, tasks, done, tags, series };
  },
};

/** Why a task is where it is. */
export type Why = {
  /** The task. */
  readonly task: number;
  /** The place of its stage in the job. */
  readonly stage: number;
  /** Its name within its stage. */
  readonly key: string;
  /** Where it is in its life, or where its stage is. */
  readonly phase: string;
  /** The reason. */
  readonly because?:
    /** An executor is at it. */
    | { readonly kind: "running"; readonly value: Why_Running }
    /** It is over. */
    | { readonly kind: "ended"; readonly value: Why_Ended }
    /** Its stage waits for other stages. */
    | { readonly kind: "needs"; readonly value: Why_Needs }
    /** It waits for a lock. */
    | { readonly kind: "lock"; readonly value: Why_Lock }
    /** Its planner waits for a signal. */
    | { readonly kind: "signal"; readonly value: Why_WaitsForSignal }
    /** It failed and is tried again. */
    | { readonly kind: "backOff"; readonly value: Why_BackOff }
    /** As many of its stage run as may. */
    | { readonly kind: "parallelMax"; readonly value: Why_ParallelMax }
    /** Its tenant runs as much as it may. */
    | { readonly kind: "quota"; readonly value: Why_Quota }
    /** No executor can run it. */
    | { readonly kind: "noExecutor"; readonly value: Why_NoExecutor }
    /** The executors that could are drained. */
    | { readonly kind: "drained"; readonly value: Why_Drained }
    /** Executors could, and are busy with others. */
    | { readonly kind: "queued"; readonly value: Why_Queued }
    /** Results of the job are being made known outside. */
    | { readonly kind: "publishing"; readonly value: Why_Publishing }
    /** The job was cancelled; stages that run after any end still have their turn. */
    | { readonly kind: "cleaningUp"; readonly value: Why_CleaningUp }
    /** It is an array, or one of an array's tasks that is not queued yet. */
    | { readonly kind: "array"; readonly value: Why_Array }
    /** The job has ended, and stages of other jobs are still to get its end notice. */
    | { readonly kind: "notices"; readonly value: Why_Notices }
    | undefined;
  /** Where the next attempt goes on. */
  readonly checkpoint?: Why_Checkpoint | undefined;
  /** How its attempts failed. */
  readonly failures: readonly ReasonCount[];
  /** Names of signals to its stage that its planner or executor has not received yet. */
  readonly pending: readonly string[];
  /** The executor of its second attempt: the first one takes far longer than those of other tasks did. */
  readonly second: string;
};

export const Why: Message<Why> = {
  typeName: "millrace.work.v1.Why",
  write(message, to) {
    if (message.task !== 0) {
      to.int64(8, message.task);
    }
    if (message.stage !== 0) {
      to.int32(16, message.stage);
    }
    if (message.key !== "") {
      to.string(26, message.key);
    }
    if (message.phase !== "") {
      to.string(34, message.phase);
    }
    switch (message.because?.kind) {
      case "running": {
        const start = to.open(42);
        Why_Running.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "ended": {
        const start = to.open(50);
        Why_Ended.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "needs": {
        const start = to.open(58);
        Why_Needs.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "lock": {
        const start = to.open(66);
        Why_Lock.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "signal": {
        const start = to.open(74);
        Why_WaitsForSignal.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "backOff": {
        const start = to.open(82);
        Why_BackOff.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "parallelMax": {
        const start = to.open(90);
        Why_ParallelMax.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "quota": {
        const start = to.open(98);
        Why_Quota.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "noExecutor": {
        const start = to.open(106);
        Why_NoExecutor.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "drained": {
        const start = to.open(114);
        Why_Drained.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "queued": {
        const start = to.open(122);
        Why_Queued.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "publishing": {
        const start = to.open(130);
        Why_Publishing.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "cleaningUp": {
        const start = to.open(322);
        Why_CleaningUp.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "array": {
        const start = to.open(330);
        Why_Array.write(message.because.value, to);
        to.close(start);
        break;
      }
      case "notices": {
        const start = to.open(338);
        Why_Notices.write(message.because.value, to);
        to.close(start);
        break;
      }
    }
    if (message.checkpoint !== undefined) {
      const start = to.open(346);
      Why_Checkpoint.write(message.checkpoint, to);
      to.close(start);
    }
    for (const one of message.failures) {
      const start = to.open(354);
      ReasonCount.write(one, to);
      to.close(start);
    }
    for (const one of message.pending) {
      to.string(362, one);
    }
    if (message.second !== "") {
      to.string(370, message.second);
    }
  },
  read(from, end, before) {
    let task = before === undefined ? 0 : before.task;
    let stage = before === undefined ? 0 : before.stage;
    let key = before === undefined ? "" : before.key;
    let phase = before === undefined ? "" : before.phase;
    let because = before?.because;
    let checkpoint = before?.checkpoint;
    const failures: ReasonCount[] = before === undefined ? [] : (before.failures as ReasonCount[]);
    const pending: string[] = before === undefined ? [] : (before.pending as string[]);
    let second = before === undefined ? "" : before.second;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          task = from.int64();
          break;
        }
        case 16: {
          stage = from.int32();
          break;
        }
        case 26: {
          key = from.string();
          break;
        }
        case 34: {
          phase = from.string();
          break;
        }
        case 42: {
          const stop = from.enter();
          because = { kind: "running", value: Why_Running.read(from, stop, because?.kind === "running" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 50: {
          const stop = from.enter();
          because = { kind: "ended", value: Why_Ended.read(from, stop, because?.kind === "ended" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 58: {
          const stop = from.enter();
          because = { kind: "needs", value: Why_Needs.read(from, stop, because?.kind === "needs" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 66: {
          const stop = from.enter();
          because = { kind: "lock", value: Why_Lock.read(from, stop, because?.kind === "lock" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 74: {
          const stop = from.enter();
          because = { kind: "signal", value: Why_WaitsForSignal.read(from, stop, because?.kind === "signal" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 82: {
          const stop = from.enter();
          because = { kind: "backOff", value: Why_BackOff.read(from, stop, because?.kind === "backOff" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 90: {
          const stop = from.enter();
          because = { kind: "parallelMax", value: Why_ParallelMax.read(from, stop, because?.kind === "parallelMax" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 98: {
          const stop = from.enter();
          because = { kind: "quota", value: Why_Quota.read(from, stop, because?.kind === "quota" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 106: {
          const stop = from.enter();
          because = { kind: "noExecutor", value: Why_NoExecutor.read(from, stop, because?.kind === "noExecutor" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 114: {
          const stop = from.enter();
          because = { kind: "drained", value: Why_Drained.read(from, stop, because?.kind === "drained" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 122: {
          const stop = from.enter();
          because = { kind: "queued", value: Why_Queued.read(from, stop, because?.kind === "queued" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 130: {
          const stop = from.enter();
          because = { kind: "publishing", value: Why_Publishing.read(from, stop, because?.kind === "publishing" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 322: {
          const stop = from.enter();
          because = { kind: "cleaningUp", value: Why_CleaningUp.read(from, stop, because?.kind === "cleaningUp" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 330: {
          const stop = from.enter();
          because = { kind: "array", value: Why_Array.read(from, stop, because?.kind === "array" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 338: {
          const stop = from.enter();
          because = { kind: "notices", value: Why_Notices.read(from, stop, because?.kind === "notices" ? because.value : undefined) };
          from.leave(stop);
          break;
        }
        case 346: {
          const stop = from.enter();
          checkpoint = Why_Checkpoint.read(from, stop, checkpoint);
          from.leave(stop);
          break;
        }
        case 354: {
          const stop = from.enter();
          failures.push(ReasonCount.read(from, stop));
          from.leave(stop);
          break;
        }
        case 362: {
          from.count();
          pending.push(from.string());
          break;
        }
        case 370: {
          second = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { task, stage, key, phase, because, checkpoint, failures, pending, second };
  },
};

/** An executor is at it. */
export type Why_Running = {
  /** Which. */
  readonly executor: string;
};

export const Why_Running: Message<Why_Running> = {
  typeName: "millrace.work.v1.Why.Running",
  write(message, to) {
    if (message.executor !== "") {
      to.string(10, message.executor);
    }
  },
  read(from, end, before) {
    let executor = before === undefined ? "" : before.executor;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          executor = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { executor };
  },
};

/** It is over. */
export type Why_Ended = {
  /** How it ended. */
  readonly phase: string;
};

export const Why_Ended: Message<Why_Ended> = {
  typeName: "millrace.work.v1.Why.Ended",
  write(message, to) {
    if (message.phase !== "") {
      to.string(10, message.phase);
    }
  },
  read(from, end, before) {
    let phase = before === undefined ? "" : before.phase;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          phase = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { phase };
  },
};

/** Its stage waits for other stages. */
export type Why_Needs = {
  /** Their names. */
  readonly stages: readonly string[];
};

export const Why_Needs: Message<Why_Needs> = {
  typeName: "millrace.work.v1.Why.Needs",
  write(message, to) {
    for (const one of message.stages) {
      to.string(10, one);
    }
  },
  read(from, end, before) {
    const stages: string[] = before === undefined ? [] : (before.stages as string[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          from.count();
          stages.push(from.string());
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stages };
  },
};

/** It waits for a lock. */
export type Why_Lock = {
  /** The lock. */
  readonly name: string;
  /** The jobs that hold it. */
  readonly heldBy: readonly number[];
  /** How many wait before it. */
  readonly ahead: number;
};

export const Why_Lock: Message<Why_Lock> = {
  typeName: "millrace.work.v1.Why.Lock",
  write(message, to) {
    if (message.name !== "") {
      to.string(10, message.name);
    }
    if (message.heldBy.length > 0) {
      const start = to.open(18);
      for (const one of message.heldBy) to.plainInt64(one);
      to.close(start);
    }
    if (message.ahead !== 0) {
      to.int32(24, message.ahead);
    }
  },
  read(from, end, before) {
    let name = before === undefined ? "" : before.name;
    const heldBy: number[] = before === undefined ? [] : (before.heldBy as number[]);
    let ahead = before === undefined ? 0 : before.ahead;
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
            heldBy.push(from.int64());
          }
          from.leave(stop);
          break;
        }
        case 16: {
          from.count();
          heldBy.push(from.int64());
          break;
        }
        case 24: {
          ahead = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { name, heldBy, ahead };
  },
};

/** Its planner waits for a signal. */
export type Why_WaitsForSignal = {
  /** Any of these. */
  readonly names: readonly string[];
  /** Or for this long. */
  readonly forMs: number;
};

export const Why_WaitsForSignal: Message<Why_WaitsForSignal> = {
  typeName: "millrace.work.v1.Why.WaitsForSignal",
  write(message, to) {
    for (const one of message.names) {
      to.string(10, one);
    }
    if (message.forMs !== 0) {
      to.int64(16, message.forMs);
    }
  },
  read(from, end, before) {
    const names: string[] = before === undefined ? [] : (before.names as string[]);
    let forMs = before === undefined ? 0 : before.forMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          from.count();
          names.push(from.string());
          break;
        }
        case 16: {
          forMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { names, forMs };
  },
};

/** It failed and is tried again. */
export type Why_BackOff = {
  /** After this time. */
  readonly forMs: number;
  /** Why it failed. */
  readonly lastFailure: string;
};

export const Why_BackOff: Message<Why_BackOff> = {
  typeName: "millrace.work.v1.Why.BackOff",
  write(message, to) {
    if (message.forMs !== 0) {
      to.int64(8, message.forMs);
    }
    if (message.lastFailure !== "") {
      to.string(18, message.lastFailure);
    }
  },
  read(from, end, before) {
    let forMs = before === undefined ? 0 : before.forMs;
    let lastFailure = before === undefined ? "" : before.lastFailure;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          forMs = from.int64();
          break;
        }
        case 18: {
          lastFailure = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { forMs, lastFailure };
  },
};

/** As many of its stage run as may. */
export type Why_ParallelMax = {
  /** How many may. */
  readonly limit: number;
};

export const Why_ParallelMax: Message<Why_ParallelMax> = {
  typeName: "millrace.work.v1.Why.ParallelMax",
  write(message, to) {
    if (message.limit !== 0) {
      to.int32(8, message.limit);
    }
  },
  read(from, end, before) {
    let limit = before === undefined ? 0 : before.limit;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          limit = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { limit };
  },
};

/** Its tenant runs as much as it may. */
export type Why_Quota = {
  /** How many claims it has. */
  readonly running: number;
  /** How many it may have. */
  readonly runningMax: number;
};

export const Why_Quota: Message<Why_Quota> = {
  typeName: "millrace.work.v1.Why.Quota",
  write(message, to) {
    if (message.running !== 0) {
      to.int32(8, message.running);
    }
    if (message.runningMax !== 0) {
      to.int32(16, message.runningMax);
    }
  },
  read(from, end, before) {
    let running = before === undefined ? 0 : before.running;
    let runningMax = before === undefined ? 0 : before.runningMax;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          running = from.int32();
          break;
        }
        case 16: {
          runningMax = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { running, runningMax };
  },
};

/** No executor that the shard knows can run it. */
export type Why_NoExecutor = {
  /** The one that comes nearest. */
  readonly nearest?: string | undefined;
  /** The labels which that one lacks. */
  readonly missing: readonly string[];
};

export const Why_NoExecutor: Message<Why_NoExecutor> = {
  typeName: "millrace.work.v1.Why.NoExecutor",
  write(message, to) {
    if (message.nearest !== undefined) {
      to.string(10, message.nearest);
    }
    for (const one of message.missing) {
      to.string(18, one);
    }
  },
  read(from, end, before) {
    let nearest = before?.nearest;
    const missing: string[] = before === undefined ? [] : (before.missing as string[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          nearest = from.string();
          break;
        }
        case 18: {
          from.count();
          missing.push(from.string());
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { nearest, missing };
  },
};

/** The executors that could are drained. */
export type Why_Drained = {
  /** Which. */
  readonly executors: readonly string[];
};

export const Why_Drained: Message<Why_Drained> = {
  typeName: "millrace.work.v1.Why.Drained",
  write(message, to) {
    for (const one of message.executors) {
      to.string(10, one);
    }
  },
  read(from, end, before) {
    const executors: string[] = before === undefined ? [] : (before.executors as string[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          from.count();
          executors.push(from.string());
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { executors };
  },
};

/** Executors could, and are busy with others. */
export type Why_Queued = {
  /** Its place among the tasks of its tenant. */
  readonly position: number;
  /** How many executors could run it. */
  readonly executors: number;
  /** How many tenants come before its own. */
  readonly tenantsAhead: number;
};

export const Why_Queued: Message<Why_Queued> = {
  typeName: "millrace.work.v1.Why.Queued",
  write(message, to) {
    if (message.position !== 0) {
      to.int32(8, message.position);
    }
    if (message.executors !== 0) {
      to.int32(16, message.executors);
    }
    if (message.tenantsAhead !== 0) {
      to.int32(24, message.tenantsAhead);
    }
  },
  read(from, end, before) {
    let position = before === undefined ? 0 : before.position;
    let executors = before === undefined ? 0 : before.executors;
    let tenantsAhead = before === undefined ? 0 : before.tenantsAhead;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          position = from.int32();
          break;
        }
        case 16: {
          executors = from.int32();
          break;
        }
        case 24: {
          tenantsAhead = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { position, executors, tenantsAhead };
  },
};

/** All of the job is done, and results of it are being made known outside. */
export type Why_Publishing = {
  /** How many. */
  readonly results: number;
  /** How long ago the oldest of them was committed. */
  readonly forMs: number;
};

export const Why_Publishing: Message<Why_Publishing> = {
  typeName: "millrace.work.v1.Why.Publishing",
  write(message, to) {
    if (message.results !== 0) {
      to.int32(8, message.results);
    }
    if (message.forMs !== 0) {
      to.int64(16, message.forMs);
    }
  },
  read(from, end, before) {
    let results = before === undefined ? 0 : before.results;
    let forMs = before === undefined ? 0 : before.forMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          results = from.int32();
          break;
        }
        case 16: {
          forMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { results, forMs };
  },
};

/** The job was cancelled; stages that run after any end still have their turn. */
export type Why_CleaningUp = {
  /** Their names. */
  readonly stages: readonly string[];
  /** For how long. */
  readonly forMs: number;
};

export const Why_CleaningUp: Message<Why_CleaningUp> = {
  typeName: "millrace.work.v1.Why.CleaningUp",
  write(message, to) {
    for (const one of message.stages) {
      to.string(10, one);
    }
    if (message.forMs !== 0) {
      to.int64(16, message.forMs);
    }
  },
  read(from, end, before) {
    const stages: string[] = before === undefined ? [] : (before.stages as string[]);
    let forMs = before === undefined ? 0 : before.forMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          from.count();
          stages.push(from.string());
          break;
        }
        case 16: {
          forMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stages, forMs };
  },
};

/** It is an array, or one of an array's tasks that is not queued yet. */
export type Why_Array = {
  /** How many tasks the array has. */
  readonly count: number;
  /** How many of them have ended. */
  readonly ended: number;
  /** How many executors are at. */
  readonly running: number;
  /** How many are queued. */
  readonly queued: number;
  /** How many are queued before this task; 0 for the array. */
  readonly ahead: number;
};

export const Why_Array: Message<Why_Array> = {
  typeName: "millrace.work.v1.Why.Array",
  write(message, to) {
    if (message.count !== 0) {
      to.int64(8, message.count);
    }
    if (message.ended !== 0) {
      to.int64(16, message.ended);
    }
    if (message.running !== 0) {
      to.int32(24, message.running);
    }
    if (message.queued !== 0) {
      to.int32(32, message.queued);
    }
    if (message.ahead !== 0) {
      to.int64(40, message.ahead);
    }
  },
  read(from, end, before) {
    let count = before === undefined ? 0 : before.count;
    let ended = before === undefined ? 0 : before.ended;
    let running = before === undefined ? 0 : before.running;
    let queued = before === undefined ? 0 : before.queued;
    let ahead = before === undefined ? 0 : before.ahead;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          count = from.int64();
          break;
        }
        case 16: {
          ended = from.int64();
          break;
        }
        case 24: {
          running = from.int32();
          break;
        }
        case 32: {
          queued = from.int32();
          break;
        }
        case 40: {
          ahead = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { count, ended, running, queued, ahead };
  },
};

/** The job has ended, and stages of other jobs are still to get its end notice. */
export type Why_Notices = {
  /** How many. */
  readonly notices: number;
  /** How long ago the job ended. */
  readonly forMs: number;
};

export const Why_Notices: Message<Why_Notices> = {
  typeName: "millrace.work.v1.Why.Notices",
  write(message, to) {
    if (message.notices !== 0) {
      to.int32(8, message.notices);
    }
    if (message.forMs !== 0) {
      to.int64(16, message.forMs);
    }
  },
  read(from, end, before) {
    let notices = before === undefined ? 0 : before.notices;
    let forMs = before === undefined ? 0 : before.forMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          notices = from.int32();
          break;
        }
        case 16: {
          forMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { notices, forMs };
  },
};

/** What an attempt got to. */
export type Why_Checkpoint = {
  /** The token of the attempt. */
  readonly token: number;
  /** How long ago it was recorded. */
  readonly agoMs: number;
};

export const Why_Checkpoint: Message<Why_Checkpoint> = {
  typeName: "millrace.work.v1.Why.Checkpoint",
  write(message, to) {
    if (message.token !== 0) {
      to.int64(8, message.token);
    }
    if (message.agoMs !== 0) {
      to.int64(16, message.agoMs);
    }
  },
  read(from, end, before) {
    let token = before === undefined ? 0 : before.token;
    let agoMs = before === undefined ? 0 : before.agoMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          token = from.int64();
          break;
        }
        case 16: {
          agoMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { token, agoMs };
  },
};

/** What a planner has to go by: the spec, how the needs ended with their results, and the signals. */
export type PlanInputs = {
  /** The job's spec. */
  readonly spec: string;
  /** The name of the stage that is planned. */
  readonly stage: string;
  /** How often it was opened. */
  readonly generation: number;
  /** The stages that it needed. */
  readonly needs: readonly PlanInputs_Need[];
  /** The signals that came. */
  readonly signals: readonly Signal[];
  /** What came of the needs' tasks, as many as fit. */
  readonly results: readonly PlanInputs_NeedResult[];
  /** Where to go on when not all results fitted. */
  readonly next?: PlanInputs_Place | undefined;
  /** Only if the job was cancelled. */
  readonly cancelled?: PlanInputs_Cancelled | undefined;
};

export const PlanInputs: Message<PlanInputs> = {
  typeName: "millrace.work.v1.PlanInputs",
  write(message, to) {
    if (message.spec !== "") {
      to.string(10, message.spec);
    }
    if (message.stage !== "") {
      to.string(18, message.stage);
    }
    if (message.generation !== 0) {
      to.int32(24, message.generation);
    }
    for (const one of message.needs) {
      const start = to.open(34);
      PlanInputs_Need.write(one, to);
      to.close(start);
    }
    for (const one of message.signals) {
      const start = to.open(42);
      Signal.write(one, to);
      to.close(start);
    }
    for (const one of message.results) {
      const start = to.open(50);
      PlanInputs_NeedResult.write(one, to);
      to.close(start);
    }
    if (message.next !== undefined) {
      const start = to.open(58);
      PlanInputs_Place.write(message.next, to);
      to.close(start);
    }
    if (message.cancelled !== undefined) {
      const start = to.open(322);
      PlanInputs_Cancelled.write(message.cancelled, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let spec = before === undefined ? "" : before.spec;
    let stage = before === undefined ? "" : before.stage;
    let generation = before === undefined ? 0 : before.generation;
    const needs: PlanInputs_Need[] = before === undefined ? [] : (before.needs as PlanInputs_Need[]);
    const signals: Signal[] = before === undefined ? [] : (before.signals as Signal[]);
    const results: PlanInputs_NeedResult[] = before === undefined ? [] : (before.results as PlanInputs_NeedResult[]);
    let next = before?.next;
    let cancelled = before?.cancelled;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          spec = from.string();
          break;
        }
        case 18: {
          stage = from.string();
          break;
        }
        case 24: {
          generation = from.int32();
          break;
        }
        case 34: {
          const stop = from.enter();
          needs.push(PlanInputs_Need.read(from, stop));
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          signals.push(Signal.read(from, stop));
          from.leave(stop);
          break;
        }
        case 50: {
          const stop = from.enter();
          results.push(PlanInputs_NeedResult.read(from, stop));
          from.leave(stop);
          break;
        }
        case 58: {
          const stop = from.enter();
          next = PlanInputs_Place.read(from, stop, next);
          from.leave(stop);
          break;
        }
        case 322: {
          const stop = from.enter();
          cancelled = PlanInputs_Cancelled.read(from, stop, cancelled);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { spec, stage, generation, needs, signals, results, next, cancelled };
  },
};

/** A stage that this one needed. */
export type PlanInputs_Need = {
  /** Its place in the job. */
  readonly stage: number;
  /** Its name. */
  readonly name: string;
  /** How it ended. */
  readonly phase: number;
  /** How often it was opened. */
  readonly generation: number;
  /** The blob that lists its results: those of an array are not among the results here. */
  readonly manifest?: string | undefined;
};

export const PlanInputs_Need: Message<PlanInputs_Need> = {
  typeName: "millrace.work.v1.PlanInputs.Need",
  write(message, to) {
    if (message.stage !== 0) {
      to.int32(8, message.stage);
    }
    if (message.name !== "") {
      to.string(18, message.name);
    }
    if (message.phase !== 0) {
      to.int32(24, message.phase);
    }
    if (message.generation !== 0) {
      to.int32(32, message.generation);
    }
    if (message.manifest !== undefined) {
      to.string(482, message.manifest);
    }
  },
  read(from, end, before) {
    let stage = before === undefined ? 0 : before.stage;
    let name = before === undefined ? "" : before.name;
    let phase = before === undefined ? 0 : before.phase;
    let generation = before === undefined ? 0 : before.generation;
    let manifest = before?.manifest;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          stage = from.int32();
          break;
        }
        case 18: {
          name = from.string();
          break;
        }
        case 24: {
          phase = from.int32();
          break;
        }
        case 32: {
          generation = from.int32();
          break;
        }
        case 482: {
          manifest = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stage, name, phase, generation, manifest };
  },
};

/** A task of such a stage. */
export type PlanInputs_NeedResult = {
  /** The place of its stage in the job. */
  readonly stage: number;
  /** Its name within its stage. */
  readonly key: string;
  /** How often its stage was opened. */
  readonly generation: number;
  /** How it ended. */
  readonly phase: number;
  /** What came of it. */
  readonly result?: Result | undefined;
  /** Why its last attempt failed, if it has no result. */
  readonly failure?: Failure | undefined;
};

export const PlanInputs_NeedResult: Message<PlanInputs_NeedResult> = {
  typeName: "millrace.work.v1.PlanInputs.NeedResult",
  write(message, to) {
    if (message.stage !== 0) {
      to.int32(8, message.stage);
    }
    if (message.key !== "") {
      to.string(18, message.key);
    }
    if (message.generation !== 0) {
      to.int32(24, message.generation);
    }
    if (message.phase !== 0) {
      to.int32(32, message.phase);
    }
    if (message.result !== undefined) {
      const start = to.open(42);
      Result.write(message.result, to);
      to.close(start);
    }
    if (message.failure !== undefined) {
      const start = to.open(322);
      Failure.write(message.failure, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stage = before === undefined ? 0 : before.stage;
    let key = before === undefined ? "" : before.key;
    let generation = before === undefined ? 0 : before.generation;
    let phase = before === undefined ? 0 : before.phase;
    let result = before?.result;
    let failure = before?.failure;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          stage = from.int32();
          break;
        }
        case 18: {
          key = from.string();
          break;
        }
        case 24: {
          generation = from.int32();
          break;
        }
        case 32: {
          phase = from.int32();
          break;
        }
        case 42: {
          const stop = from.enter();
          result = Result.read(from, stop, result);
          from.leave(stop);
          break;
        }
        case 322: {
          const stop = from.enter();
          failure = Failure.read(from, stop, failure);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stage, key, generation, phase, result, failure };
  },
};

/** Where to go on. */
export type PlanInputs_Place = {
  /** The place of the stage in the job. */
  readonly stage: number;
  /** The place of the task in the stage. */
  readonly index: number;
};

export const PlanInputs_Place: Message<PlanInputs_Place> = {
  typeName: "millrace.work.v1.PlanInputs.Place",
  write(message, to) {
    if (message.stage !== 0) {
      to.int32(8, message.stage);
    }
    if (message.index !== 0) {
      to.int32(16, message.index);
    }
  },
  read(from, end, before) {
    let stage = before === undefined ? 0 : before.stage;
    let index = before === undefined ? 0 : before.index;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          stage = from.int32();
          break;
        }
        case 16: {
          index = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stage, index };
  },
};

/** The job was cancelled, and the stage runs nevertheless. */
export type PlanInputs_Cancelled = {
  /** Why. */
  readonly reason: string;
  /** How long it has for that. */
  readonly forMs: number;
};

export const PlanInputs_Cancelled: Message<PlanInputs_Cancelled> = {
  typeName: "millrace.work.v1.PlanInputs.Cancelled",
  write(message, to) {
    if (message.reason !== "") {
      to.string(10, message.reason);
    }
    if (message.forMs !== 0) {
      to.int64(16, message.forMs);
    }
  },
  read(from, end, before) {
    let reason = before === undefined ? "" : before.reason;
    let forMs = before === undefined ? 0 : before.forMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          reason = from.string();
          break;
        }
        case 16: {
          forMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { reason, forMs };
  },
};

/** An executor as the shard knows it. */
export type ExecutorView = {
  /** Its name. */
  readonly executor: string;
  /** The labels that it offers. */
  readonly offers: readonly string[];
  /** How many claims it holds. */
  readonly claims: number;
  /** Why it gets no work, if so. */
  readonly drained?: string | undefined;
  /** How often it failed in a row through its own fault. */
  readonly failures: number;
  /** How long ago it was last heard of. */
  readonly seenAgoMs: number;
};

export const ExecutorView: Message<ExecutorView> = {
  typeName: "millrace.work.v1.ExecutorView",
  write(message, to) {
    if (message.executor !== "") {
      to.string(10, message.executor);
    }
    for (const one of message.offers) {
      to.string(18, one);
    }
    if (message.claims !== 0) {
      to.int32(24, message.claims);
    }
    if (message.drained !== undefined) {
      to.string(34, message.drained);
    }
    if (message.failures !== 0) {
      to.int32(40, message.failures);
    }
    if (message.seenAgoMs !== 0) {
      to.int64(48, message.seenAgoMs);
    }
  },
  read(from, end, before) {
    let executor = before === undefined ? "" : before.executor;
    const offers: string[] = before === undefined ? [] : (before.offers as string[]);
    let claims = before === undefined ? 0 : before.claims;
    let drained = before?.drained;
    let failures = before === undefined ? 0 : before.failures;
    let seenAgoMs = before === undefined ? 0 : before.seenAgoMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          executor = from.string();
          break;
        }
        case 18: {
          from.count();
          offers.push(from.string());
          break;
        }
        case 24: {
          claims = from.int32();
          break;
        }
        case 34: {
          drained = from.string();
          break;
        }
        case 40: {
          failures = from.int32();
          break;
        }
        case 48: {
          seenAgoMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { executor, offers, claims, drained, failures, seenAgoMs };
  },
};

/** A shard in numbers. */
export type Stats = {
  /** The shard. */
  readonly shard: number;
  /** Jobs in memory. */
  readonly jobs: number;
  /** Jobs that have not ended. */
  readonly liveJobs: number;
  /** Tasks in memory. */
  readonly tasks: number;
  /** Tasks that wait for an executor. */
  readonly ready: number;
  /** Live claims. */
  readonly claims: number;
  /** Tenants in memory. */
  readonly tenants: number;
  /** Executors in memory. */
  readonly executors: number;
  /** Memory, estimated. */
  readonly stateBytes: number;
  /** The shard's clock. */
  readonly nowAtMs: number;
  /** The sum of the weights of tenants with ready work, for executors that choose which shard to visit. */
  readonly readyWeight: number;
  /** Results that are committed and not made known outside yet. */
  readonly unpublished: number;
};

export const Stats: Message<Stats> = {
  typeName: "millrace.work.v1.Stats",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.jobs !== 0) {
      to.int64(16, message.jobs);
    }
    if (message.liveJobs !== 0) {
      to.int64(24, message.liveJobs);
    }
    if (message.tasks !== 0) {
      to.int64(32, message.tasks);
    }
    if (message.ready !== 0) {
      to.int64(40, message.ready);
    }
    if (message.claims !== 0) {
      to.int64(48, message.claims);
    }
    if (message.tenants !== 0) {
      to.int64(56, message.tenants);
    }
    if (message.executors !== 0) {
      to.int64(64, message.executors);
    }
    if (message.stateBytes !== 0) {
      to.int64(72, message.stateBytes);
    }
    if (message.nowAtMs !== 0) {
      to.int64(80, message.nowAtMs);
    }
    if (message.readyWeight !== 0) {
      to.int64(88, message.readyWeight);
    }
    if (message.unpublished !== 0) {
      to.int64(96, message.unpublished);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let jobs = before === undefined ? 0 : before.jobs;
    let liveJobs = before === undefined ? 0 : before.liveJobs;
    let tasks = before === undefined ? 0 : before.tasks;
    let ready = before === undefined ? 0 : before.ready;
    let claims = before === undefined ? 0 : before.claims;
    let tenants = before === undefined ? 0 : before.tenants;
    let executors = before === undefined ? 0 : before.executors;
    let stateBytes = before === undefined ? 0 : before.stateBytes;
    let nowAtMs = before === undefined ? 0 : before.nowAtMs;
    let readyWeight = before === undefined ? 0 : before.readyWeight;
    let unpublished = before === undefined ? 0 : before.unpublished;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 16: {
          jobs = from.int64();
          break;
        }
        case 24: {
          liveJobs = from.int64();
          break;
        }
        case 32: {
          tasks = from.int64();
          break;
        }
        case 40: {
          ready = from.int64();
          break;
        }
        case 48: {
          claims = from.int64();
          break;
        }
        case 56: {
          tenants = from.int64();
          break;
        }
        case 64: {
          executors = from.int64();
          break;
        }
        case 72: {
          stateBytes = from.int64();
          break;
        }
        case 80: {
          nowAtMs = from.int64();
          break;
        }
        case 88: {
          readyWeight = from.int64();
          break;
        }
        case 96: {
          unpublished = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, jobs, liveJobs, tasks, ready, claims, tenants, executors, stateBytes, nowAtMs, readyWeight, unpublished };
  },
};

/** Something that happened. */
export type Event = {
  /** What, such as "job-submitted". */
  readonly kind: string;
  /** The whole event as a JSON object, as the log keeps it: fields never change their meaning, new ones may be added. */
  readonly json: string;
};

export const Event: Message<Event> = {
  typeName: "millrace.work.v1.Event",
  write(message, to) {
    if (message.kind !== "") {
      to.string(10, message.kind);
    }
    if (message.json !== "") {
      to.string(18, message.json);
    }
  },
  read(from, end, before) {
    let kind = before === undefined ? "" : before.kind;
    let json = before === undefined ? "" : before.json;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          kind = from.string();
          break;
        }
        case 18: {
          json = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { kind, json };
  },
};

// Generated from proto/millrace/work/v1/commands.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";
import { Status } from "#wire/generated/google/rpc/status.ts";
import { Checkpoint } from "#wire/generated/millrace/work/v1/model.ts";
import { Claim } from "#wire/generated/millrace/work/v1/model.ts";
import { Grant } from "#wire/generated/millrace/work/v1/model.ts";
import { HeldClaim } from "#wire/generated/millrace/work/v1/model.ts";
import { LockSpec } from "#wire/generated/millrace/work/v1/model.ts";
import { Notice } from "#wire/generated/millrace/work/v1/model.ts";
import { Plan } from "#wire/generated/millrace/work/v1/model.ts";
import { Result } from "#wire/generated/millrace/work/v1/model.ts";
import { Reuse } from "#wire/generated/millrace/work/v1/model.ts";
import { Signal } from "#wire/generated/millrace/work/v1/model.ts";
import { StageSpec } from "#wire/generated/millrace/work/v1/model.ts";
import { Stamp } from "#wire/generated/millrace/work/v1/model.ts";
import { Step } from "#wire/generated/millrace/work/v1/model.ts";
import { Tag } from "#wire/generated/millrace/work/v1/model.ts";

/** Asks for a job. */
export type SubmitRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** Whose job it is. */
  readonly tenant: string;
  /** The dialect that the specs are written in. */
  readonly door: string;
  /** Its name, for people. */
  readonly name: string;
  /** Binds the request to at most one job: repeated, it gets the same job again. */
  readonly requestKey?: string | undefined;
  /** Tells whether a repeated request key carries the same request. */
  readonly payloadHash: string;
  /** Live jobs of the same tenant and door with the same merge key are one job. */
  readonly mergeKey?: string | undefined;
  /** The subscriber that waits for the job. When all subscribers have left, the job is cancelled. */
  readonly subscriber?: string | undefined;
  /** How long after the last of them has left. */
  readonly leaveGraceMs?: number | undefined;
  /** From -100 to 100; higher runs first within the tenant. */
  readonly priority: number;
  /** The job's spec, in a format of the door; opaque to the shard. */
  readonly spec: string;
  /** Its stages, at least one. */
  readonly stages: readonly StageSpec[];
  /** The job ends after this time at the latest. */
  readonly deadlineMs: number;
  /** Held while the job runs. */
  readonly lock?: LockSpec | undefined;
  /** Results of earlier jobs that may be taken over. */
  readonly reuse: readonly Reuse[];
  /**
   * Begins nothing: joins the live job with the merge key, or is refused with "nothing-to-join". Leave stages,
   * deadline_ms, lock and reuse unset; a shard that does not know this field refuses a submission without stages.
   */
  readonly joinOnly: boolean;
  /** The trace that the job is recorded in, as W3C Trace Context writes it. At most 256 characters. */
  readonly trace?: string | undefined;
  /** How long stages that run after any end have when the job is cancelled; absent: ten minutes. */
  readonly cancelGraceMs?: number | undefined;
  /** What the job is found by: sorted by name, each name once, at most 16. Needs feature level 3. */
  readonly tags: readonly Tag[];
  /** Takes the next number of the tenant's and door's series of this name in the shard. Needs feature level 3. */
  readonly series?: string | undefined;
  /** Who is told when the job has ended, once; at most 8. Needs feature level 3. */
  readonly notify: readonly Notice[];
  /** History has a row of the job from its submission on, and keeps the submission for a re-run. From feature level 3 on. */
  readonly tracked: boolean;
};

export const SubmitRequest: Message<SubmitRequest> = {
  typeName: "millrace.work.v1.SubmitRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
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
    if (message.requestKey !== undefined) {
      to.string(42, message.requestKey);
    }
    if (message.payloadHash !== "") {
      to.string(50, message.payloadHash);
    }
    if (message.mergeKey !== undefined) {
      to.string(58, message.mergeKey);
    }
    if (message.subscriber !== undefined) {
      to.string(66, message.subscriber);
    }
    if (message.leaveGraceMs !== undefined) {
      to.int64(72, message.leaveGraceMs);
    }
    if (message.priority !== 0) {
      to.int32(80, message.priority);
    }
    if (message.spec !== "") {
      to.string(90, message.spec);
    }
    for (const one of message.stages) {
      const start = to.open(98);
      StageSpec.write(one, to);
      to.close(start);
    }
    if (message.deadlineMs !== 0) {
      to.int64(104, message.deadlineMs);
    }
    if (message.lock !== undefined) {
      const start = to.open(114);
      LockSpec.write(message.lock, to);
      to.close(start);
    }
    for (const one of message.reuse) {
      const start = to.open(122);
      Reuse.write(one, to);
      to.close(start);
    }
    if (message.joinOnly) {
      to.bool(128, message.joinOnly);
    }
    if (message.trace !== undefined) {
      to.string(138, message.trace);
    }
    if (message.cancelGraceMs !== undefined) {
      to.int64(320, message.cancelGraceMs);
    }
    for (const one of message.tags) {
      const start = to.open(562);
      Tag.write(one, to);
      to.close(start);
    }
    if (message.series !== undefined) {
      to.string(570, message.series);
    }
    for (const one of message.notify) {
      const start = to.open(578);
      Notice.write(one, to);
      to.close(start);
    }
    if (message.tracked) {
      to.bool(584, message.tracked);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let tenant = before === undefined ? "" : before.tenant;
    let door = before === undefined ? "" : before.door;
    let name = before === undefined ? "" : before.name;
    let requestKey = before?.requestKey;
    let payloadHash = before === undefined ? "" : before.payloadHash;
    let mergeKey = before?.mergeKey;
    let subscriber = before?.subscriber;
    let leaveGraceMs = before?.leaveGraceMs;
    let priority = before === undefined ? 0 : before.priority;
    let spec = before === undefined ? "" : before.spec;
    const stages: StageSpec[] = before === undefined ? [] : (before.stages as StageSpec[]);
    let deadlineMs = before === undefined ? 0 : before.deadlineMs;
    let lock = before?.lock;
    const reuse: Reuse[] = before === undefined ? [] : (before.reuse as Reuse[]);
    let joinOnly = before === undefined ? false : before.joinOnly;
    let trace = before?.trace;
    let cancelGraceMs = before?.cancelGraceMs;
    const tags: Tag[] = before === undefined ? [] : (before.tags as Tag[]);
    let series = before?.series;
    const notify: Notice[] = before === undefined ? [] : (before.notify as Notice[]);
    let tracked = before === undefined ? false : before.tracked;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
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
        case 42: {
          requestKey = from.string();
          break;
        }
        case 50: {
          payloadHash = from.string();
          break;
        }
        case 58: {
          mergeKey = from.string();
          break;
        }
        case 66: {
          subscriber = from.string();
          break;
        }
        case 72: {
          leaveGraceMs = from.int64();
          break;
        }
        case 80: {
          priority = from.int32();
          break;
        }
        case 90: {
          spec = from.string();
          break;
        }
        case 98: {
          const stop = from.enter();
          stages.push(StageSpec.read(from, stop));
          from.leave(stop);
          break;
        }
        case 104: {
          deadlineMs = from.int64();
          break;
        }
        case 114: {
          const stop = from.enter();
          lock = LockSpec.read(from, stop, lock);
          from.leave(stop);
          break;
        }
        case 122: {
          const stop = from.enter();
          reuse.push(Reuse.read(from, stop));
          from.leave(stop);
          break;
        }
        case 128: {
          joinOnly = from.bool();
          break;
        }
        case 138: {
          trace = from.string();
          break;
        }
        case 320: {
          cancelGraceMs = from.int64();
          break;
        }
        case 562: {
          const stop = from.enter();
          tags.push(Tag.read(from, stop));
          from.leave(stop);
          break;
        }
        case 570: {
          series = from.string();
          break;
        }
        case 578: {
          const stop = from.enter();
          notify.push(Notice.read(from, stop));
          from.leave(stop);
          break;
        }
        case 584: {
          tracked = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, tenant, door, name, requestKey, payloadHash, mergeKey, subscriber, leaveGraceMs, priority, spec, stages, deadlineMs, lock, reuse, joinOnly, trace, cancelGraceMs, tags, series, notify, tracked };
  },
};

/** The answer to Submit. */
export type SubmitResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** The job. */
  readonly job: number;
  /** It is new. */
  readonly created: boolean;
  /** It is an older job with the same merge key. */
  readonly merged: boolean;
  /** Its number in its series; unset without one, and for a known job that has left memory. */
  readonly number?: number | undefined;
};

export const SubmitResponse: Message<SubmitResponse> = {
  typeName: "millrace.work.v1.SubmitResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.job !== 0) {
      to.int64(16, message.job);
    }
    if (message.created) {
      to.bool(24, message.created);
    }
    if (message.merged) {
      to.bool(32, message.merged);
    }
    if (message.number !== undefined) {
      to.int64(560, message.number);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let job = before === undefined ? 0 : before.job;
    let created = before === undefined ? false : before.created;
    let merged = before === undefined ? false : before.merged;
    let number = before?.number;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          job = from.int64();
          break;
        }
        case 24: {
          created = from.bool();
          break;
        }
        case 32: {
          merged = from.bool();
          break;
        }
        case 560: {
          number = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, job, created, merged, number };
  },
};

/** Says that a subscriber no longer waits for a job. */
export type LeaveRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The job. */
  readonly job: number;
  /** Who. */
  readonly subscriber: string;
};

export const LeaveRequest: Message<LeaveRequest> = {
  typeName: "millrace.work.v1.LeaveRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.job !== 0) {
      to.int64(16, message.job);
    }
    if (message.subscriber !== "") {
      to.string(26, message.subscriber);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let job = before === undefined ? 0 : before.job;
    let subscriber = before === undefined ? "" : before.subscriber;
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
        case 26: {
          subscriber = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, job, subscriber };
  },
};

/** The answer to Leave. */
export type LeaveResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** The subscriber was waiting until now. */
  readonly left: boolean;
};

export const LeaveResponse: Message<LeaveResponse> = {
  typeName: "millrace.work.v1.LeaveResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.left) {
      to.bool(16, message.left);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let left = before === undefined ? false : before.left;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          left = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, left };
  },
};

/** Stops a job. Stages that run after any end, and are not planned yet, still get their turn, within a grace. */
export type CancelRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The job. */
  readonly job: number;
  /** Why, for people. */
  readonly reason: string;
  /** If set, a job of another tenant is refused. */
  readonly tenant?: string | undefined;
  /** Without that grace, also for a job that is being cancelled already. */
  readonly hard: boolean;
  /** Stops only this stage, by its place in the job. */
  readonly stage?: number | undefined;
  /** The grace; absent: as the job was submitted. */
  readonly graceMs?: number | undefined;
};

export const CancelRequest: Message<CancelRequest> = {
  typeName: "millrace.work.v1.CancelRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.job !== 0) {
      to.int64(16, message.job);
    }
    if (message.reason !== "") {
      to.string(26, message.reason);
    }
    if (message.tenant !== undefined) {
      to.string(34, message.tenant);
    }
    if (message.hard) {
      to.bool(320, message.hard);
    }
    if (message.stage !== undefined) {
      to.int32(328, message.stage);
    }
    if (message.graceMs !== undefined) {
      to.int64(336, message.graceMs);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let job = before === undefined ? 0 : before.job;
    let reason = before === undefined ? "" : before.reason;
    let tenant = before?.tenant;
    let hard = before === undefined ? false : before.hard;
    let stage = before?.stage;
    let graceMs = before?.graceMs;
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
        case 26: {
          reason = from.string();
          break;
        }
        case 34: {
          tenant = from.string();
          break;
        }
        case 320: {
          hard = from.bool();
          break;
        }
        case 328: {
          stage = from.int32();
          break;
        }
        case 336: {
          graceMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, job, reason, tenant, hard, stage, graceMs };
  },
};

/** The answer to Cancel. */
export type CancelResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** Where the job is now. */
  readonly phase: number;
};

export const CancelResponse: Message<CancelResponse> = {
  typeName: "millrace.work.v1.CancelResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.phase !== 0) {
      to.int32(16, message.phase);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let phase = before === undefined ? 0 : before.phase;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          phase = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, phase };
  },
};

/** Tells the planner of a stage some news. */
export type SignalRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The job. */
  readonly job: number;
  /** The place of the stage in the job. */
  readonly stage: number;
  /** The news. Must be there. */
  readonly signal?: Signal | undefined;
  /** If set, a job of another tenant is refused. */
  readonly tenant?: string | undefined;
};

export const SignalRequest: Message<SignalRequest> = {
  typeName: "millrace.work.v1.SignalRequest",
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
    if (message.signal !== undefined) {
      const start = to.open(34);
      Signal.write(message.signal, to);
      to.close(start);
    }
    if (message.tenant !== undefined) {
      to.string(42, message.tenant);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let job = before === undefined ? 0 : before.job;
    let stage = before === undefined ? 0 : before.stage;
    let signal = before?.signal;
    let tenant = before?.tenant;
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
          const stop = from.enter();
          signal = Signal.read(from, stop, signal);
          from.leave(stop);
          break;
        }
        case 42: {
          tenant = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, job, stage, signal, tenant };
  },
};

/** The answer to Signal. */
export type SignalResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** It was news. */
  readonly recorded: boolean;
};

export const SignalResponse: Message<SignalResponse> = {
  typeName: "millrace.work.v1.SignalResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.recorded) {
      to.bool(16, message.recorded);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let recorded = before === undefined ? false : before.recorded;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          recorded = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, recorded };
  },
};

/** Asks for work. */
export type ReserveRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The executor's name. */
  readonly executor: string;
  /** Labels that it offers; sorted, without repeats. */
  readonly offers: readonly string[];
  /** Affinity hints that it would like best, best first. */
  readonly prefer: readonly string[];
  /** How many tasks at most. */
  readonly count: number;
  /** Starts the granted claims at once, which saves a call. */
  readonly start: boolean;
  /** Names this request: repeated, it gets the same claims again while they live. Only the last one is remembered. */
  readonly nonce: string;
  /** Serve only this tenant. */
  readonly tenant?: string | undefined;
  /** How long the call may be held when there is nothing to do, a minute at most. Not in a Batch. */
  readonly waitMs?: number | undefined;
  /**
   * The same, but only for tasks without outside effects. They may still be released, as long as their end was not
   * reported.
   */
  readonly startPure: boolean;
};

export const ReserveRequest: Message<ReserveRequest> = {
  typeName: "millrace.work.v1.ReserveRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.executor !== "") {
      to.string(18, message.executor);
    }
    for (const one of message.offers) {
      to.string(26, one);
    }
    for (const one of message.prefer) {
      to.string(34, one);
    }
    if (message.count !== 0) {
      to.int32(40, message.count);
    }
    if (message.start) {
      to.bool(48, message.start);
    }
    if (message.nonce !== "") {
      to.string(58, message.nonce);
    }
    if (message.tenant !== undefined) {
      to.string(66, message.tenant);
    }
    if (message.waitMs !== undefined) {
      to.int64(72, message.waitMs);
    }
    if (message.startPure) {
      to.bool(80, message.startPure);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let executor = before === undefined ? "" : before.executor;
    const offers: string[] = before === undefined ? [] : (before.offers as string[]);
    const prefer: string[] = before === undefined ? [] : (before.prefer as string[]);
    let count = before === undefined ? 0 : before.count;
    let start = before === undefined ? false : before.start;
    let nonce = before === undefined ? "" : before.nonce;
    let tenant = before?.tenant;
    let waitMs = before?.waitMs;
    let startPure = before === undefined ? false : before.startPure;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          executor = from.string();
          break;
        }
        case 26: {
          from.count();
          offers.push(from.string());
          break;
        }
        case 34: {
          from.count();
          prefer.push(from.string());
          break;
        }
        case 40: {
          count = from.int32();
          break;
        }
        case 48: {
          start = from.bool();
          break;
        }
        case 58: {
          nonce = from.string();
          break;
        }
        case 66: {
          tenant = from.string();
          break;
        }
        case 72: {
          waitMs = from.int64();
          break;
        }
        case 80: {
          startPure = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, executor, offers, prefer, count, start, nonce, tenant, waitMs, startPure };
  },
};

/** The answer to Reserve. */
export type ReserveResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** The claims; none when there is nothing to do. */
  readonly grants: readonly Grant[];
};

export const ReserveResponse: Message<ReserveResponse> = {
  typeName: "millrace.work.v1.ReserveResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    for (const one of message.grants) {
      const start = to.open(18);
      Grant.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    const grants: Grant[] = before === undefined ? [] : (before.grants as Grant[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          grants.push(Grant.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, grants };
  },
};

/** Says that the work on a claim has begun. */
export type StartRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The executor that holds the claim. */
  readonly executor: string;
  /** The task. */
  readonly task: number;
  /** The claim's token. */
  readonly token: number;
};

export const StartRequest: Message<StartRequest> = {
  typeName: "millrace.work.v1.StartRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.executor !== "") {
      to.string(18, message.executor);
    }
    if (message.task !== 0) {
      to.int64(24, message.task);
    }
    if (message.token !== 0) {
      to.int64(32, message.token);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let executor = before === undefined ? "" : before.executor;
    let task = before === undefined ? 0 : before.task;
    let token = before === undefined ? 0 : before.token;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          executor = from.string();
          break;
        }
        case 24: {
          task = from.int64();
          break;
        }
        case 32: {
          token = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, executor, task, token };
  },
};

/** The answer to Start. */
export type StartResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** How long the claim lasts from now on without renewal. */
  readonly leaseMs: number;
};

export const StartResponse: Message<StartResponse> = {
  typeName: "millrace.work.v1.StartResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.leaseMs !== 0) {
      to.int64(16, message.leaseMs);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let leaseMs = before === undefined ? 0 : before.leaseMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          leaseMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, leaseMs };
  },
};

/** Makes claims last. */
export type RenewRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The executor that holds the claim. */
  readonly executor: string;
  /** The claims that the executor believes to hold. All others that it holds are renewed and listed, too. */
  readonly claims: readonly Claim[];
};

export const RenewRequest: Message<RenewRequest> = {
  typeName: "millrace.work.v1.RenewRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.executor !== "") {
      to.string(18, message.executor);
    }
    for (const one of message.claims) {
      const start = to.open(26);
      Claim.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let executor = before === undefined ? "" : before.executor;
    const claims: Claim[] = before === undefined ? [] : (before.claims as Claim[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          executor = from.string();
          break;
        }
        case 26: {
          const stop = from.enter();
          claims.push(Claim.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, executor, claims };
  },
};

/** The answer to Renew. */
export type RenewResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** All that it does hold. */
  readonly held: readonly HeldClaim[];
  /** Those of the request that it does not hold: stop working on them. */
  readonly lost: readonly Claim[];
};

export const RenewResponse: Message<RenewResponse> = {
  typeName: "millrace.work.v1.RenewResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    for (const one of message.held) {
      const start = to.open(18);
      HeldClaim.write(one, to);
      to.close(start);
    }
    for (const one of message.lost) {
      const start = to.open(26);
      Claim.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    const held: HeldClaim[] = before === undefined ? [] : (before.held as HeldClaim[]);
    const lost: Claim[] = before === undefined ? [] : (before.lost as Claim[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          held.push(HeldClaim.read(from, stop));
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          lost.push(Claim.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, held, lost };
  },
};

/** Tells how far a task has got. */
export type ReportRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The executor that holds the claim. */
  readonly executor: string;
  /** The task. */
  readonly task: number;
  /** The claim's token. */
  readonly token: number;
  /** The steps that changed. */
  readonly steps: readonly Step[];
};

export const ReportRequest: Message<ReportRequest> = {
  typeName: "millrace.work.v1.ReportRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.executor !== "") {
      to.string(18, message.executor);
    }
    if (message.task !== 0) {
      to.int64(24, message.task);
    }
    if (message.token !== 0) {
      to.int64(32, message.token);
    }
    for (const one of message.steps) {
      const start = to.open(42);
      Step.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let executor = before === undefined ? "" : before.executor;
    let task = before === undefined ? 0 : before.task;
    let token = before === undefined ? 0 : before.token;
    const steps: Step[] = before === undefined ? [] : (before.steps as Step[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          executor = from.string();
          break;
        }
        case 24: {
          task = from.int64();
          break;
        }
        case 32: {
          token = from.int64();
          break;
        }
        case 42: {
          const stop = from.enter();
          steps.push(Step.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, executor, task, token, steps };
  },
};

/** The answer to Report. */
export type ReportResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** How many were recorded. */
  readonly steps: number;
};

export const ReportResponse: Message<ReportResponse> = {
  typeName: "millrace.work.v1.ReportResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.steps !== 0) {
      to.int32(16, message.steps);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let steps = before === undefined ? 0 : before.steps;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          steps = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, steps };
  },
};

/** Brings a task's result. Its blobs must have been uploaded before. */
export type CommitRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The executor that holds the claim. */
  readonly executor: string;
  /** The task. */
  readonly task: number;
  /** The claim's token. */
  readonly token: number;
  /** The result. Must be there. */
  readonly result?: Result | undefined;
};

export const CommitRequest: Message<CommitRequest> = {
  typeName: "millrace.work.v1.CommitRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.executor !== "") {
      to.string(18, message.executor);
    }
    if (message.task !== 0) {
      to.int64(24, message.task);
    }
    if (message.token !== 0) {
      to.int64(32, message.token);
    }
    if (message.result !== undefined) {
      const start = to.open(42);
      Result.write(message.result, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let executor = before === undefined ? "" : before.executor;
    let task = before === undefined ? 0 : before.task;
    let token = before === undefined ? 0 : before.token;
    let result = before?.result;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          executor = from.string();
          break;
        }
        case 24: {
          task = from.int64();
          break;
        }
        case 32: {
          token = from.int64();
          break;
        }
        case 42: {
          const stop = from.enter();
          result = Result.read(from, stop, result);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, executor, task, token, result };
  },
};

/** The answer to Commit. */
export type CommitResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** False, though not refused: the task was being cancelled, and this ended its claim. */
  readonly committed: boolean;
  /** The generation that the result counts for. */
  readonly generation: number;
};

export const CommitResponse: Message<CommitResponse> = {
  typeName: "millrace.work.v1.CommitResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.committed) {
      to.bool(16, message.committed);
    }
    if (message.generation !== 0) {
      to.int32(24, message.generation);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let committed = before === undefined ? false : before.committed;
    let generation = before === undefined ? 0 : before.generation;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          committed = from.bool();
          break;
        }
        case 24: {
          generation = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, committed, generation };
  },
};

/** Brings a planner's answer. */
export type RecordPlanRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The executor that holds the claim. */
  readonly executor: string;
  /** The task. */
  readonly task: number;
  /** The claim's token. */
  readonly token: number;
  /** The answer. Must be there. */
  readonly plan?: Plan | undefined;
};

export const RecordPlanRequest: Message<RecordPlanRequest> = {
  typeName: "millrace.work.v1.RecordPlanRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.executor !== "") {
      to.string(18, message.executor);
    }
    if (message.task !== 0) {
      to.int64(24, message.task);
    }
    if (message.token !== 0) {
      to.int64(32, message.token);
    }
    if (message.plan !== undefined) {
      const start = to.open(42);
      Plan.write(message.plan, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let executor = before === undefined ? "" : before.executor;
    let task = before === undefined ? 0 : before.task;
    let token = before === undefined ? 0 : before.token;
    let plan = before?.plan;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          executor = from.string();
          break;
        }
        case 24: {
          task = from.int64();
          break;
        }
        case 32: {
          token = from.int64();
          break;
        }
        case 42: {
          const stop = from.enter();
          plan = Plan.read(from, stop, plan);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, executor, task, token, plan };
  },
};

/** The answer to RecordPlan. */
export type RecordPlanResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** False when another planner's answer came first. */
  readonly recorded: boolean;
  /** The answer that counts. */
  readonly plan: number;
};

export const RecordPlanResponse: Message<RecordPlanResponse> = {
  typeName: "millrace.work.v1.RecordPlanResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.recorded) {
      to.bool(16, message.recorded);
    }
    if (message.plan !== 0) {
      to.int32(24, message.plan);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let recorded = before === undefined ? false : before.recorded;
    let plan = before === undefined ? 0 : before.plan;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          recorded = from.bool();
          break;
        }
        case 24: {
          plan = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, recorded, plan };
  },
};

/** Ends an attempt without a result. */
export type FailRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The executor that holds the claim. */
  readonly executor: string;
  /** The task. */
  readonly task: number;
  /** The claim's token. */
  readonly token: number;
  /** Why. */
  readonly reason: number;
  /** More, for people. */
  readonly message: string;
  /** What the attempt leaves nevertheless. Its blobs must have been uploaded before; it has nothing to publish. */
  readonly result?: Result | undefined;
};

export const FailRequest: Message<FailRequest> = {
  typeName: "millrace.work.v1.FailRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.executor !== "") {
      to.string(18, message.executor);
    }
    if (message.task !== 0) {
      to.int64(24, message.task);
    }
    if (message.token !== 0) {
      to.int64(32, message.token);
    }
    if (message.reason !== 0) {
      to.int32(40, message.reason);
    }
    if (message.message !== "") {
      to.string(50, message.message);
    }
    if (message.result !== undefined) {
      const start = to.open(322);
      Result.write(message.result, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let executor = before === undefined ? "" : before.executor;
    let task = before === undefined ? 0 : before.task;
    let token = before === undefined ? 0 : before.token;
    let reason = before === undefined ? 0 : before.reason;
    let message = before === undefined ? "" : before.message;
    let result = before?.result;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          executor = from.string();
          break;
        }
        case 24: {
          task = from.int64();
          break;
        }
        case 32: {
          token = from.int64();
          break;
        }
        case 40: {
          reason = from.int32();
          break;
        }
        case 50: {
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
    return { shard, executor, task, token, reason, message, result };
  },
};

/** The answer to Fail. */
export type FailResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** When it is tried again, if it is. */
  readonly retryInMs?: number | undefined;
};

export const FailResponse: Message<FailResponse> = {
  typeName: "millrace.work.v1.FailResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.retryInMs !== undefined) {
      to.int64(16, message.retryInMs);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let retryInMs = before?.retryInMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          retryInMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, retryInMs };
  },
};

/** Records what an attempt has got so far: the next attempt at the task gets it with its grant. */
export type CheckpointRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The executor that holds the claim. */
  readonly executor: string;
  /** The task. */
  readonly task: number;
  /** The claim's token. */
  readonly token: number;
  /** It replaces the one before. Must be there; its blobs must have been uploaded before. */
  readonly checkpoint?: Checkpoint | undefined;
};

export const CheckpointRequest: Message<CheckpointRequest> = {
  typeName: "millrace.work.v1.CheckpointRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.executor !== "") {
      to.string(18, message.executor);
    }
    if (message.task !== 0) {
      to.int64(24, message.task);
    }
    if (message.token !== 0) {
      to.int64(32, message.token);
    }
    if (message.checkpoint !== undefined) {
      const start = to.open(42);
      Checkpoint.write(message.checkpoint, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let executor = before === undefined ? "" : before.executor;
    let task = before === undefined ? 0 : before.task;
    let token = before === undefined ? 0 : before.token;
    let checkpoint = before?.checkpoint;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          executor = from.string();
          break;
        }
        case 24: {
          task = from.int64();
          break;
        }
        case 32: {
          token = from.int64();
          break;
        }
        case 42: {
          const stop = from.enter();
          checkpoint = Checkpoint.read(from, stop, checkpoint);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, executor, task, token, checkpoint };
  },
};

/** The answer to Checkpoint, given when it is durable. */
export type CheckpointResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** Always true. */
  readonly recorded: boolean;
};

export const CheckpointResponse: Message<CheckpointResponse> = {
  typeName: "millrace.work.v1.CheckpointResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.recorded) {
      to.bool(16, message.recorded);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let recorded = before === undefined ? false : before.recorded;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          recorded = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, recorded };
  },
};

/** Gives a claim back, at no cost to the task's attempts. */
export type ReleaseRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The executor that holds the claim. */
  readonly executor: string;
  /** The task. */
  readonly task: number;
  /** The claim's token. */
  readonly token: number;
  /** Where the next attempt goes on. Started work with outside effects is taken back only with one. */
  readonly checkpoint?: Checkpoint | undefined;
};

export const ReleaseRequest: Message<ReleaseRequest> = {
  typeName: "millrace.work.v1.ReleaseRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.executor !== "") {
      to.string(18, message.executor);
    }
    if (message.task !== 0) {
      to.int64(24, message.task);
    }
    if (message.token !== 0) {
      to.int64(32, message.token);
    }
    if (message.checkpoint !== undefined) {
      const start = to.open(322);
      Checkpoint.write(message.checkpoint, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let executor = before === undefined ? "" : before.executor;
    let task = before === undefined ? 0 : before.task;
    let token = before === undefined ? 0 : before.token;
    let checkpoint = before?.checkpoint;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          executor = from.string();
          break;
        }
        case 24: {
          task = from.int64();
          break;
        }
        case 32: {
          token = from.int64();
          break;
        }
        case 322: {
          const stop = from.enter();
          checkpoint = Checkpoint.read(from, stop, checkpoint);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, executor, task, token, checkpoint };
  },
};

/** The answer to Release. */
export type ReleaseResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** It was held until now. */
  readonly released: boolean;
};

export const ReleaseResponse: Message<ReleaseResponse> = {
  typeName: "millrace.work.v1.ReleaseResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.released) {
      to.bool(16, message.released);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let released = before === undefined ? false : before.released;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          released = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, released };
  },
};

/** Says that a result is no longer any good, because its blobs are lost: the task is done again. */
export type InvalidateRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The task. */
  readonly task: number;
  /** The generation of the result. */
  readonly generation: number;
  /** Why, for people. */
  readonly reason: string;
};

export const InvalidateRequest: Message<InvalidateRequest> = {
  typeName: "millrace.work.v1.InvalidateRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.task !== 0) {
      to.int64(16, message.task);
    }
    if (message.generation !== 0) {
      to.int32(24, message.generation);
    }
    if (message.reason !== "") {
      to.string(34, message.reason);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let task = before === undefined ? 0 : before.task;
    let generation = before === undefined ? 0 : before.generation;
    let reason = before === undefined ? "" : before.reason;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 16: {
          task = from.int64();
          break;
        }
        case 24: {
          generation = from.int32();
          break;
        }
        case 34: {
          reason = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, task, generation, reason };
  },
};

/** The answer to Invalidate. */
export type InvalidateResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** The generation in which it is done again. */
  readonly generation: number;
};

export const InvalidateResponse: Message<InvalidateResponse> = {
  typeName: "millrace.work.v1.InvalidateResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.generation !== 0) {
      to.int32(16, message.generation);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let generation = before === undefined ? 0 : before.generation;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          generation = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, generation };
  },
};

/** Gives an executor no more work until Resume. */
export type DrainRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** Which. */
  readonly executor: string;
  /** Why, for people. */
  readonly reason: string;
};

export const DrainRequest: Message<DrainRequest> = {
  typeName: "millrace.work.v1.DrainRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.executor !== "") {
      to.string(18, message.executor);
    }
    if (message.reason !== "") {
      to.string(26, message.reason);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let executor = before === undefined ? "" : before.executor;
    let reason = before === undefined ? "" : before.reason;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          executor = from.string();
          break;
        }
        case 26: {
          reason = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, executor, reason };
  },
};

/** The answer to Drain. */
export type DrainResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** Always true. */
  readonly draining: boolean;
};

export const DrainResponse: Message<DrainResponse> = {
  typeName: "millrace.work.v1.DrainResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.draining) {
      to.bool(16, message.draining);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let draining = before === undefined ? false : before.draining;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          draining = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, draining };
  },
};

/** Gives an executor work again. */
export type ResumeRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** Which. */
  readonly executor: string;
};

export const ResumeRequest: Message<ResumeRequest> = {
  typeName: "millrace.work.v1.ResumeRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.executor !== "") {
      to.string(18, message.executor);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let executor = before === undefined ? "" : before.executor;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          executor = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, executor };
  },
};

/** The answer to Resume. */
export type ResumeResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** It had been drained. */
  readonly resumed: boolean;
};

export const ResumeResponse: Message<ResumeResponse> = {
  typeName: "millrace.work.v1.ResumeResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.resumed) {
      to.bool(16, message.resumed);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let resumed = before === undefined ? false : before.resumed;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          resumed = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, resumed };
  },
};

/** Sets a tenant's share and limits. */
export type SetTenantRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** Which. */
  readonly tenant: string;
  /** Its share among tenants with work, from 1 to 10000. */
  readonly weight: number;
  /** Claims at once, over all shards; 0 for no limit. */
  readonly runningMax: number;
  /** Tasks waiting at once in one shard; 0 for the limit that tenants have without a setting. */
  readonly queuedMax: number;
  /** The shard that lends out the tenant's running quota. */
  readonly home: number;
};

export const SetTenantRequest: Message<SetTenantRequest> = {
  typeName: "millrace.work.v1.SetTenantRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.tenant !== "") {
      to.string(18, message.tenant);
    }
    if (message.weight !== 0) {
      to.int32(24, message.weight);
    }
    if (message.runningMax !== 0) {
      to.int32(32, message.runningMax);
    }
    if (message.queuedMax !== 0) {
      to.int32(40, message.queuedMax);
    }
    if (message.home !== 0) {
      to.int32(48, message.home);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let tenant = before === undefined ? "" : before.tenant;
    let weight = before === undefined ? 0 : before.weight;
    let runningMax = before === undefined ? 0 : before.runningMax;
    let queuedMax = before === undefined ? 0 : before.queuedMax;
    let home = before === undefined ? 0 : before.home;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          tenant = from.string();
          break;
        }
        case 24: {
          weight = from.int32();
          break;
        }
        case 32: {
          runningMax = from.int32();
          break;
        }
        case 40: {
          queuedMax = from.int32();
          break;
        }
        case 48: {
          home = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, tenant, weight, runningMax, queuedMax, home };
  },
};

/** The answer to SetTenant. */
export type SetTenantResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** It was different before. */
  readonly changed: boolean;
};

export const SetTenantResponse: Message<SetTenantResponse> = {
  typeName: "millrace.work.v1.SetTenantResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.changed) {
      to.bool(16, message.changed);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let changed = before === undefined ? false : before.changed;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          changed = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, changed };
  },
};

/** Asks a tenant's home shard to lend slots of its quota to another shard for a while. */
export type LendQuotaRequest = {
  /** The shard that is asked. In a Batch: leave it unset. */
  readonly shard: number;
  /** The tenant. */
  readonly tenant: string;
  /** The shard that borrows. */
  readonly borrower: number;
  /** How many slots it would like. */
  readonly want: number;
  /** Claims that it holds under earlier slices: these it keeps whatever is asked. */
  readonly running: number;
  /** For how long. */
  readonly forMs: number;
  /** The slice that it goes by now, for good: what it was lent before that is free again. */
  readonly holds?: number | undefined;
};

export const LendQuotaRequest: Message<LendQuotaRequest> = {
  typeName: "millrace.work.v1.LendQuotaRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.tenant !== "") {
      to.string(18, message.tenant);
    }
    if (message.borrower !== 0) {
      to.int32(24, message.borrower);
    }
    if (message.want !== 0) {
      to.int32(32, message.want);
    }
    if (message.running !== 0) {
      to.int32(40, message.running);
    }
    if (message.forMs !== 0) {
      to.int64(48, message.forMs);
    }
    if (message.holds !== undefined) {
      to.int64(56, message.holds);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let tenant = before === undefined ? "" : before.tenant;
    let borrower = before === undefined ? 0 : before.borrower;
    let want = before === undefined ? 0 : before.want;
    let running = before === undefined ? 0 : before.running;
    let forMs = before === undefined ? 0 : before.forMs;
    let holds = before?.holds;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          tenant = from.string();
          break;
        }
        case 24: {
          borrower = from.int32();
          break;
        }
        case 32: {
          want = from.int32();
          break;
        }
        case 40: {
          running = from.int32();
          break;
        }
        case 48: {
          forMs = from.int64();
          break;
        }
        case 56: {
          holds = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, tenant, borrower, want, running, forMs, holds };
  },
};

/** The answer to LendQuota. */
export type LendQuotaResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** How many it gets. */
  readonly slots: number;
  /** For how long. */
  readonly forMs: number;
  /** Names the slice. Absent from a node of an older version. */
  readonly slice?: number | undefined;
};

export const LendQuotaResponse: Message<LendQuotaResponse> = {
  typeName: "millrace.work.v1.LendQuotaResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.slots !== 0) {
      to.int32(16, message.slots);
    }
    if (message.forMs !== 0) {
      to.int64(24, message.forMs);
    }
    if (message.slice !== undefined) {
      to.int64(32, message.slice);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let slots = before === undefined ? 0 : before.slots;
    let forMs = before === undefined ? 0 : before.forMs;
    let slice = before?.slice;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 16: {
          slots = from.int32();
          break;
        }
        case 24: {
          forMs = from.int64();
          break;
        }
        case 32: {
          slice = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, slots, forMs, slice };
  },
};

/** One of many commands. */
export type Command = {
  /** Must be there. */
  readonly command?:
    /** Asks for a job. */
    | { readonly kind: "submit"; readonly value: SubmitRequest }
    /** Says that a subscriber no longer waits for a job. */
    | { readonly kind: "leave"; readonly value: LeaveRequest }
    /** Stops a job. */
    | { readonly kind: "cancel"; readonly value: CancelRequest }
    /** Tells the planner of a stage some news. */
    | { readonly kind: "signal"; readonly value: SignalRequest }
    /** Asks for work. */
    | { readonly kind: "reserve"; readonly value: ReserveRequest }
    /** Says that the work on a claim has begun. */
    | { readonly kind: "start"; readonly value: StartRequest }
    /** Makes claims last. */
    | { readonly kind: "renew"; readonly value: RenewRequest }
    /** Tells how far a task has got. */
    | { readonly kind: "report"; readonly value: ReportRequest }
    /** Brings a task's result. Its blobs must have been uploaded before. */
    | { readonly kind: "commit"; readonly value: CommitRequest }
    /** Brings a planner's answer. */
    | { readonly kind: "recordPlan"; readonly value: RecordPlanRequest }
    /** Ends an attempt without a result. */
    | { readonly kind: "fail"; readonly value: FailRequest }
    /** Gives a claim back, at no cost to the task's attempts. */
    | { readonly kind: "release"; readonly value: ReleaseRequest }
    /** Says that a result is no longer any good, because its blobs are lost: the task is done again. */
    | { readonly kind: "invalidate"; readonly value: InvalidateRequest }
    /** Gives an executor no more work until Resume. */
    | { readonly kind: "drain"; readonly value: DrainRequest }
    /** Gives an executor work again. */
    | { readonly kind: "resume"; readonly value: ResumeRequest }
    /** Sets a tenant's share and limits. */
    | { readonly kind: "setTenant"; readonly value: SetTenantRequest }
    /** Asks a tenant's home shard to lend slots of its quota to another shard for a while. */
    | { readonly kind: "lendQuota"; readonly value: LendQuotaRequest }
    /** Records what an attempt has got so far. */
    | { readonly kind: "checkpoint"; readonly value: CheckpointRequest }
    | undefined;
};

export const Command: Message<Command> = {
  typeName: "millrace.work.v1.Command",
  write(message, to) {
    switch (message.command?.kind) {
      case "submit": {
        const start = to.open(10);
        SubmitRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "leave": {
        const start = to.open(18);
        LeaveRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "cancel": {
        const start = to.open(26);
        CancelRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "signal": {
        const start = to.open(34);
        SignalRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "reserve": {
        const start = to.open(42);
        ReserveRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "start": {
        const start = to.open(50);
        StartRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "renew": {
        const start = to.open(58);
        RenewRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "report": {
        const start = to.open(66);
        ReportRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "commit": {
        const start = to.open(74);
        CommitRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "recordPlan": {
        const start = to.open(82);
        RecordPlanRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "fail": {
        const start = to.open(90);
        FailRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "release": {
        const start = to.open(98);
        ReleaseRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "invalidate": {
        const start = to.open(106);
        InvalidateRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "drain": {
        const start = to.open(114);
        DrainRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "resume": {
        const start = to.open(122);
        ResumeRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "setTenant": {
        const start = to.open(130);
        SetTenantRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "lendQuota": {
        const start = to.open(138);
        LendQuotaRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
      case "checkpoint": {
        const start = to.open(322);
        CheckpointRequest.write(message.command.value, to);
        to.close(start);
        break;
      }
    }
  },
  read(from, end, before) {
    let command = before?.command;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          command = { kind: "submit", value: SubmitRequest.read(from, stop, command?.kind === "submit" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          command = { kind: "leave", value: LeaveRequest.read(from, stop, command?.kind === "leave" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          command = { kind: "cancel", value: CancelRequest.read(from, stop, command?.kind === "cancel" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          command = { kind: "signal", value: SignalRequest.read(from, stop, command?.kind === "signal" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          command = { kind: "reserve", value: ReserveRequest.read(from, stop, command?.kind === "reserve" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 50: {
          const stop = from.enter();
          command = { kind: "start", value: StartRequest.read(from, stop, command?.kind === "start" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 58: {
          const stop = from.enter();
          command = { kind: "renew", value: RenewRequest.read(from, stop, command?.kind === "renew" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 66: {
          const stop = from.enter();
          command = { kind: "report", value: ReportRequest.read(from, stop, command?.kind === "report" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 74: {
          const stop = from.enter();
          command = { kind: "commit", value: CommitRequest.read(from, stop, command?.kind === "commit" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 82: {
          const stop = from.enter();
          command = { kind: "recordPlan", value: RecordPlanRequest.read(from, stop, command?.kind === "recordPlan" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 90: {
          const stop = from.enter();
          command = { kind: "fail", value: FailRequest.read(from, stop, command?.kind === "fail" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 98: {
          const stop = from.enter();
          command = { kind: "release", value: ReleaseRequest.read(from, stop, command?.kind === "release" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 106: {
          const stop = from.enter();
          command = { kind: "invalidate", value: InvalidateRequest.read(from, stop, command?.kind === "invalidate" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 114: {
          const stop = from.enter();
          command = { kind: "drain", value: DrainRequest.read(from, stop, command?.kind === "drain" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 122: {
          const stop = from.enter();
          command = { kind: "resume", value: ResumeRequest.read(from, stop, command?.kind === "resume" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 130: {
          const stop = from.enter();
          command = { kind: "setTenant", value: SetTenantRequest.read(from, stop, command?.kind === "setTenant" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 138: {
          const stop = from.enter();
          command = { kind: "lendQuota", value: LendQuotaRequest.read(from, stop, command?.kind === "lendQuota" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        case 322: {
          const stop = from.enter();
          command = { kind: "checkpoint", value: CheckpointRequest.read(from, stop, command?.kind === "checkpoint" ? command.value : undefined) };
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { command };
  },
};

/** Many commands for one shard. Each is decided and answered for itself, in this order; none is held. */
export type BatchRequest = {
  /** The shard that is asked. */
  readonly shard: number;
  /** The commands. */
  readonly commands: readonly Command[];
};

export const BatchRequest: Message<BatchRequest> = {
  typeName: "millrace.work.v1.BatchRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    for (const one of message.commands) {
      const start = to.open(18);
      Command.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    const commands: Command[] = before === undefined ? [] : (before.commands as Command[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 18: {
          const stop = from.enter();
          commands.push(Command.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, commands };
  },
};

/** What one of many commands has led to. */
export type Outcome = {
  /** The answer to the command, or why it was refused. */
  readonly outcome?:
    /** The answer to Submit. */
    | { readonly kind: "submit"; readonly value: SubmitResponse }
    /** The answer to Leave. */
    | { readonly kind: "leave"; readonly value: LeaveResponse }
    /** The answer to Cancel. */
    | { readonly kind: "cancel"; readonly value: CancelResponse }
    /** The answer to Signal. */
    | { readonly kind: "signal"; readonly value: SignalResponse }
    /** The answer to Reserve. */
    | { readonly kind: "reserve"; readonly value: ReserveResponse }
    /** The answer to Start. */
    | { readonly kind: "start"; readonly value: StartResponse }
    /** The answer to Renew. */
    | { readonly kind: "renew"; readonly value: RenewResponse }
    /** The answer to Report. */
    | { readonly kind: "report"; readonly value: ReportResponse }
    /** The answer to Commit. */
    | { readonly kind: "commit"; readonly value: CommitResponse }
    /** The answer to RecordPlan. */
    | { readonly kind: "recordPlan"; readonly value: RecordPlanResponse }
    /** The answer to Fail. */
    | { readonly kind: "fail"; readonly value: FailResponse }
    /** The answer to Release. */
    | { readonly kind: "release"; readonly value: ReleaseResponse }
    /** The answer to Invalidate. */
    | { readonly kind: "invalidate"; readonly value: InvalidateResponse }
    /** The answer to Drain. */
    | { readonly kind: "drain"; readonly value: DrainResponse }
    /** The answer to Resume. */
    | { readonly kind: "resume"; readonly value: ResumeResponse }
    /** The answer to SetTenant. */
    | { readonly kind: "setTenant"; readonly value: SetTenantResponse }
    /** The answer to LendQuota. */
    | { readonly kind: "lendQuota"; readonly value: LendQuotaResponse }
    /** Refused. The stamp is in the metadata of the ErrorInfo, as "epoch" and "seq". */
    | { readonly kind: "refused"; readonly value: Status }
    /** The answer to Checkpoint. */
    | { readonly kind: "checkpoint"; readonly value: CheckpointResponse }
    | undefined;
};

export const Outcome: Message<Outcome> = {
  typeName: "millrace.work.v1.Outcome",
  write(message, to) {
    switch (message.outcome?.kind) {
      case "submit": {
        const start = to.open(10);
        SubmitResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "leave": {
        const start = to.open(18);
        LeaveResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "cancel": {
        const start = to.open(26);
        CancelResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "signal": {
        const start = to.open(34);
        SignalResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "reserve": {
        const start = to.open(42);
        ReserveResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "start": {
        const start = to.open(50);
        StartResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "renew": {
        const start = to.open(58);
        RenewResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "report": {
        const start = to.open(66);
        ReportResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "commit": {
        const start = to.open(74);
        CommitResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "recordPlan": {
        const start = to.open(82);
        RecordPlanResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "fail": {
        const start = to.open(90);
        FailResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "release": {
        const start = to.open(98);
        ReleaseResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "invalidate": {
        const start = to.open(106);
        InvalidateResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "drain": {
        const start = to.open(114);
        DrainResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "resume": {
        const start = to.open(122);
        ResumeResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "setTenant": {
        const start = to.open(130);
        SetTenantResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "lendQuota": {
        const start = to.open(138);
        LendQuotaResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "refused": {
        const start = to.open(242);
        Status.write(message.outcome.value, to);
        to.close(start);
        break;
      }
      case "checkpoint": {
        const start = to.open(322);
        CheckpointResponse.write(message.outcome.value, to);
        to.close(start);
        break;
      }
    }
  },
  read(from, end, before) {
    let outcome = before?.outcome;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          outcome = { kind: "submit", value: SubmitResponse.read(from, stop, outcome?.kind === "submit" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          outcome = { kind: "leave", value: LeaveResponse.read(from, stop, outcome?.kind === "leave" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          outcome = { kind: "cancel", value: CancelResponse.read(from, stop, outcome?.kind === "cancel" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          outcome = { kind: "signal", value: SignalResponse.read(from, stop, outcome?.kind === "signal" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          outcome = { kind: "reserve", value: ReserveResponse.read(from, stop, outcome?.kind === "reserve" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 50: {
          const stop = from.enter();
          outcome = { kind: "start", value: StartResponse.read(from, stop, outcome?.kind === "start" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 58: {
          const stop = from.enter();
          outcome = { kind: "renew", value: RenewResponse.read(from, stop, outcome?.kind === "renew" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 66: {
          const stop = from.enter();
          outcome = { kind: "report", value: ReportResponse.read(from, stop, outcome?.kind === "report" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 74: {
          const stop = from.enter();
          outcome = { kind: "commit", value: CommitResponse.read(from, stop, outcome?.kind === "commit" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 82: {
          const stop = from.enter();
          outcome = { kind: "recordPlan", value: RecordPlanResponse.read(from, stop, outcome?.kind === "recordPlan" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 90: {
          const stop = from.enter();
          outcome = { kind: "fail", value: FailResponse.read(from, stop, outcome?.kind === "fail" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 98: {
          const stop = from.enter();
          outcome = { kind: "release", value: ReleaseResponse.read(from, stop, outcome?.kind === "release" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 106: {
          const stop = from.enter();
          outcome = { kind: "invalidate", value: InvalidateResponse.read(from, stop, outcome?.kind === "invalidate" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 114: {
          const stop = from.enter();
          outcome = { kind: "drain", value: DrainResponse.read(from, stop, outcome?.kind === "drain" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 122: {
          const stop = from.enter();
          outcome = { kind: "resume", value: ResumeResponse.read(from, stop, outcome?.kind === "resume" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 130: {
          const stop = from.enter();
          outcome = { kind: "setTenant", value: SetTenantResponse.read(from, stop, outcome?.kind === "setTenant" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 138: {
          const stop = from.enter();
          outcome = { kind: "lendQuota", value: LendQuotaResponse.read(from, stop, outcome?.kind === "lendQuota" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 242: {
          const stop = from.enter();
          outcome = { kind: "refused", value: Status.read(from, stop, outcome?.kind === "refused" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        case 322: {
          const stop = from.enter();
          outcome = { kind: "checkpoint", value: CheckpointResponse.read(from, stop, outcome?.kind === "checkpoint" ? outcome.value : undefined) };
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { outcome };
  },
};

/** The answer to Batch. */
export type BatchResponse = {
  /** How fresh the oldest of the outcomes is. */
  readonly stamp?: Stamp | undefined;
  /** One for each command, in their order. */
  readonly outcomes: readonly Outcome[];
};

export const BatchResponse: Message<BatchResponse> = {
  typeName: "millrace.work.v1.BatchResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    for (const one of message.outcomes) {
      const start = to.open(18);
      Outcome.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    const outcomes: Outcome[] = before === undefined ? [] : (before.outcomes as Outcome[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          stamp = Stamp.read(from, stop, stamp);
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          outcomes.push(Outcome.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, outcomes };
  },
};

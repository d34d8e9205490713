// Generated from proto/millrace/work/v1/queries.proto: change that and run `npm run generate`.
import type { Message } from "#wire/message.ts";
import { Stamp } from "#wire/generated/millrace/work/v1/model.ts";
import { Tag } from "#wire/generated/millrace/work/v1/model.ts";
import { Event } from "#wire/generated/millrace/work/v1/view.ts";
import { ExecutorView } from "#wire/generated/millrace/work/v1/view.ts";
import { JobLine } from "#wire/generated/millrace/work/v1/view.ts";
import { JobView } from "#wire/generated/millrace/work/v1/view.ts";
import { PlanInputs } from "#wire/generated/millrace/work/v1/view.ts";
import { PlanInputs_Place } from "#wire/generated/millrace/work/v1/view.ts";
import { Stats } from "#wire/generated/millrace/work/v1/view.ts";
import { TaskView } from "#wire/generated/millrace/work/v1/view.ts";
import { Why } from "#wire/generated/millrace/work/v1/view.ts";

/** Asks for a job with its stages and the first of its tasks. */
export type GetJobRequest = {
  /** The shard that is asked. */
  readonly shard: number;
  /** The job. */
  readonly job: number;
  /** If set, a job of another tenant is refused. */
  readonly tenant?: string | undefined;
  /** How many tasks at most. */
  readonly tasksMax?: number | undefined;
  /** Only tasks of this stage, by its place. A shard that does not know this field lists tasks of all stages. */
  readonly stage?: number | undefined;
  /** With a stage: leaves out so many of its tasks, the first ones. */
  readonly tasksFrom?: number | undefined;
};

export const GetJobRequest: Message<GetJobRequest> = {
  typeName: "millrace.work.v1.GetJobRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.job !== 0) {
      to.int64(16, message.job);
    }
    if (message.tenant !== undefined) {
      to.string(26, message.tenant);
    }
    if (message.tasksMax !== undefined) {
      to.int32(32, message.tasksMax);
    }
    if (message.stage !== undefined) {
      to.int32(560, message.stage);
    }
    if (message.tasksFrom !== undefined) {
      to.int32(568, message.tasksFrom);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let job = before === undefined ? 0 : before.job;
    let tenant = before?.tenant;
    let tasksMax = before?.tasksMax;
    let stage = before?.stage;
    let tasksFrom = before?.tasksFrom;
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
          tenant = from.string();
          break;
        }
        case 32: {
          tasksMax = from.int32();
          break;
        }
        case 560: {
          stage = from.int32();
          break;
        }
        case 568: {
          tasksFrom = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, job, tenant, tasksMax, stage, tasksFrom };
  },
};

/** The answer to GetJob. */
export type GetJobResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** The job. */
  readonly job?: JobView | undefined;
};

export const GetJobResponse: Message<GetJobResponse> = {
  typeName: "millrace.work.v1.GetJobResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.job !== undefined) {
      const start = to.open(18);
      JobView.write(message.job, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let job = before?.job;
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
          job = JobView.read(from, stop, job);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, job };
  },
};

/** Asks for the jobs that the shard has in memory, newest first. */
export type ListJobsRequest = {
  /** The shard that is asked. */
  readonly shard: number;
  /** Only of this tenant. */
  readonly tenant?: string | undefined;
  /** Only of this door. */
  readonly door?: string | undefined;
  /** How many at most. */
  readonly limit: number;
  /** Only jobs with a smaller number: the last of the page before. */
  readonly before?: number | undefined;
  /** Only in this phase. A shard that does not know this field, or one of the next, lists more. */
  readonly phase?: number | undefined;
  /** Only with all of these tags. */
  readonly tags: readonly Tag[];
  /** Only submitted from this time on. */
  readonly fromMs?: number | undefined;
  /** Only submitted before this time. */
  readonly toMs?: number | undefined;
};

export const ListJobsRequest: Message<ListJobsRequest> = {
  typeName: "millrace.work.v1.ListJobsRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.tenant !== undefined) {
      to.string(18, message.tenant);
    }
    if (message.door !== undefined) {
      to.string(26, message.door);
    }
    if (message.limit !== 0) {
      to.int32(32, message.limit);
    }
    if (message.before !== undefined) {
      to.int64(40, message.before);
    }
    if (message.phase !== undefined) {
      to.int32(560, message.phase);
    }
    for (const one of message.tags) {
      const start = to.open(570);
      Tag.write(one, to);
      to.close(start);
    }
    if (message.fromMs !== undefined) {
      to.int64(576, message.fromMs);
    }
    if (message.toMs !== undefined) {
      to.int64(584, message.toMs);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let tenant = before?.tenant;
    let door = before?.door;
    let limit = before === undefined ? 0 : before.limit;
    let before_ = before?.before;
    let phase = before?.phase;
    const tags: Tag[] = before === undefined ? [] : (before.tags as Tag[]);
    let fromMs = before?.fromMs;
    let toMs = before?.toMs;
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
        case 32: {
          limit = from.int32();
          break;
        }
        case 40: {
          before_ = from.int64();
          break;
        }
        case 560: {
          phase = from.int32();
          break;
        }
        case 570: {
          const stop = from.enter();
          tags.push(Tag.read(from, stop));
          from.leave(stop);
          break;
        }
        case 576: {
          fromMs = from.int64();
          break;
        }
        case 584: {
          toMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, tenant, door, limit, before: before_, phase, tags, fromMs, toMs };
  },
};

/** The answer to ListJobs. */
export type ListJobsResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** The jobs. */
  readonly jobs: readonly JobLine[];
};

export const ListJobsResponse: Message<ListJobsResponse> = {
  typeName: "millrace.work.v1.ListJobsResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    for (const one of message.jobs) {
      const start = to.open(18);
      JobLine.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    const jobs: JobLine[] = before === undefined ? [] : (before.jobs as JobLine[]);
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
          jobs.push(JobLine.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, jobs };
  },
};

/** Asks how many jobs the shard has in memory that have not ended. */
export type CountJobsRequest = {
  /** The shard that is asked. */
  readonly shard: number;
  /** Only of this tenant. */
  readonly tenant?: string | undefined;
  /** Only of this door. */
  readonly door?: string | undefined;
  /** Only with all of these tags. */
  readonly tags: readonly Tag[];
  /** Only submitted from this time on. */
  readonly fromMs?: number | undefined;
  /** Only submitted before this time. */
  readonly toMs?: number | undefined;
};

export const CountJobsRequest: Message<CountJobsRequest> = {
  typeName: "millrace.work.v1.CountJobsRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.tenant !== undefined) {
      to.string(18, message.tenant);
    }
    if (message.door !== undefined) {
      to.string(26, message.door);
    }
    for (const one of message.tags) {
      const start = to.open(34);
      Tag.write(one, to);
      to.close(start);
    }
    if (message.fromMs !== undefined) {
      to.int64(40, message.fromMs);
    }
    if (message.toMs !== undefined) {
      to.int64(48, message.toMs);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let tenant = before?.tenant;
    let door = before?.door;
    const tags: Tag[] = before === undefined ? [] : (before.tags as Tag[]);
    let fromMs = before?.fromMs;
    let toMs = before?.toMs;
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
          const stop = from.enter();
          tags.push(Tag.read(from, stop));
          from.leave(stop);
          break;
        }
        case 40: {
          fromMs = from.int64();
          break;
        }
        case 48: {
          toMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, tenant, door, tags, fromMs, toMs };
  },
};

/** The answer to CountJobs. */
export type CountJobsResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** Phases without jobs are left out. */
  readonly phases: readonly CountJobsResponse_InPhase[];
  /** There are more jobs than the shard goes through for one answer: there may be more. */
  readonly capped: boolean;
};

export const CountJobsResponse: Message<CountJobsResponse> = {
  typeName: "millrace.work.v1.CountJobsResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    for (const one of message.phases) {
      const start = to.open(18);
      CountJobsResponse_InPhase.write(one, to);
      to.close(start);
    }
    if (message.capped) {
      to.bool(24, message.capped);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    const phases: CountJobsResponse_InPhase[] = before === undefined ? [] : (before.phases as CountJobsResponse_InPhase[]);
    let capped = before === undefined ? false : before.capped;
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
          phases.push(CountJobsResponse_InPhase.read(from, stop));
          from.leave(stop);
          break;
        }
        case 24: {
          capped = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, phases, capped };
  },
};

/** How many jobs are in a phase. */
export type CountJobsResponse_InPhase = {
  /** The phase. */
  readonly phase: number;
  /** How many. */
  readonly jobs: number;
};

export const CountJobsResponse_InPhase: Message<CountJobsResponse_InPhase> = {
  typeName: "millrace.work.v1.CountJobsResponse.InPhase",
  write(message, to) {
    if (message.phase !== 0) {
      to.int32(8, message.phase);
    }
    if (message.jobs !== 0) {
      to.int64(16, message.jobs);
    }
  },
  read(from, end, before) {
    let phase = before === undefined ? 0 : before.phase;
    let jobs = before === undefined ? 0 : before.jobs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          phase = from.int32();
          break;
        }
        case 16: {
          jobs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { phase, jobs };
  },
};

/** Asks for a task. */
export type GetTaskRequest = {
  /** The shard that is asked. */
  readonly shard: number;
  /** The task. */
  readonly task: number;
  /** If set, a job of another tenant is refused. */
  readonly tenant?: string | undefined;
};

export const GetTaskRequest: Message<GetTaskRequest> = {
  typeName: "millrace.work.v1.GetTaskRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.task !== 0) {
      to.int64(16, message.task);
    }
    if (message.tenant !== undefined) {
      to.string(26, message.tenant);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let task = before === undefined ? 0 : before.task;
    let tenant = before?.tenant;
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
        case 26: {
          tenant = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, task, tenant };
  },
};

/** The answer to GetTask. */
export type GetTaskResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** The task. */
  readonly task?: TaskView | undefined;
};

export const GetTaskResponse: Message<GetTaskResponse> = {
  typeName: "millrace.work.v1.GetTaskResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.task !== undefined) {
      const start = to.open(18);
      TaskView.write(message.task, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let task = before?.task;
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
          task = TaskView.read(from, stop, task);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, task };
  },
};

/** Asks why a job's work is not running. */
export type WhyRequest = {
  /** The shard that is asked. */
  readonly shard: number;
  /** The job. */
  readonly job: number;
  /** If set, a job of another tenant is refused. */
  readonly tenant?: string | undefined;
  /** If set, only this stage is explained; its index in the job. */
  readonly stage?: number | undefined;
  /** If set, only this task is explained. */
  readonly task?: number | undefined;
};

export const WhyRequest: Message<WhyRequest> = {
  typeName: "millrace.work.v1.WhyRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.job !== 0) {
      to.int64(16, message.job);
    }
    if (message.tenant !== undefined) {
      to.string(26, message.tenant);
    }
    if (message.stage !== undefined) {
      to.int32(32, message.stage);
    }
    if (message.task !== undefined) {
      to.int64(40, message.task);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let job = before === undefined ? 0 : before.job;
    let tenant = before?.tenant;
    let stage = before?.stage;
    let task = before?.task;
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
          tenant = from.string();
          break;
        }
        case 32: {
          stage = from.int32();
          break;
        }
        case 40: {
          task = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, job, tenant, stage, task };
  },
};

/** The answer to Why. */
export type WhyResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** Why, for each task that is not over. */
  readonly why: readonly Why[];
};

export const WhyResponse: Message<WhyResponse> = {
  typeName: "millrace.work.v1.WhyResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    for (const one of message.why) {
      const start = to.open(18);
      Why.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    const why: Why[] = before === undefined ? [] : (before.why as Why[]);
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
          why.push(Why.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, why };
  },
};

/** Asks for what a planner has to go by. */
export type PlanInputsRequest = {
  /** The shard that is asked. */
  readonly shard: number;
  /** The planning task. */
  readonly task: number;
  /** The planner's token. */
  readonly token: number;
  /** Go on from here: `next` of the answer before. */
  readonly from?: PlanInputs_Place | undefined;
  /** How many results at most. */
  readonly limit: number;
};

export const PlanInputsRequest: Message<PlanInputsRequest> = {
  typeName: "millrace.work.v1.PlanInputsRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.task !== 0) {
      to.int64(16, message.task);
    }
    if (message.token !== 0) {
      to.int64(24, message.token);
    }
    if (message.from !== undefined) {
      const start = to.open(34);
      PlanInputs_Place.write(message.from, to);
      to.close(start);
    }
    if (message.limit !== 0) {
      to.int32(40, message.limit);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let task = before === undefined ? 0 : before.task;
    let token = before === undefined ? 0 : before.token;
    let from_ = before?.from;
    let limit = before === undefined ? 0 : before.limit;
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
          token = from.int64();
          break;
        }
        case 34: {
          const stop = from.enter();
          from_ = PlanInputs_Place.read(from, stop, from_);
          from.leave(stop);
          break;
        }
        case 40: {
          limit = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, task, token, from: from_, limit };
  },
};

/** The answer to PlanInputs. */
export type PlanInputsResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** What there is. */
  readonly inputs?: PlanInputs | undefined;
};

export const PlanInputsResponse: Message<PlanInputsResponse> = {
  typeName: "millrace.work.v1.PlanInputsResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.inputs !== undefined) {
      const start = to.open(18);
      PlanInputs.write(message.inputs, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let inputs = before?.inputs;
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
          inputs = PlanInputs.read(from, stop, inputs);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, inputs };
  },
};

/** Asks for the executors that the shard knows. */
export type ListExecutorsRequest = {
  /** The shard that is asked. */
  readonly shard: number;
  /** Only those that serve this tenant. */
  readonly tenant?: string | undefined;
};

export const ListExecutorsRequest: Message<ListExecutorsRequest> = {
  typeName: "millrace.work.v1.ListExecutorsRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.tenant !== undefined) {
      to.string(18, message.tenant);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let tenant = before?.tenant;
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
        default:
          from.skip(tag);
      }
    }
    return { shard, tenant };
  },
};

/** The answer to ListExecutors. */
export type ListExecutorsResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** The executors. */
  readonly executors: readonly ExecutorView[];
};

export const ListExecutorsResponse: Message<ListExecutorsResponse> = {
  typeName: "millrace.work.v1.ListExecutorsResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    for (const one of message.executors) {
      const start = to.open(18);
      ExecutorView.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    const executors: ExecutorView[] = before === undefined ? [] : (before.executors as ExecutorView[]);
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
          executors.push(ExecutorView.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, executors };
  },
};

/** Asks for a shard in numbers. */
export type GetStatsRequest = {
  /** The shard that is asked. */
  readonly shard: number;
};

export const GetStatsRequest: Message<GetStatsRequest> = {
  typeName: "millrace.work.v1.GetStatsRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard };
  },
};

/** The answer to GetStats. */
export type GetStatsResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** The numbers. */
  readonly stats?: Stats | undefined;
};

export const GetStatsResponse: Message<GetStatsResponse> = {
  typeName: "millrace.work.v1.GetStatsResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.stats !== undefined) {
      const start = to.open(18);
      Stats.write(message.stats, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let stats = before?.stats;
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
          stats = Stats.read(from, stop, stats);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, stats };
  },
};

/** Asks for a stream of a job's events. */
export type WatchRequest = {
  /** The shard that is asked. */
  readonly shard: number;
  /** The job. */
  readonly job: number;
  /** If set, a job of another tenant is refused. */
  readonly tenant?: string | undefined;
  /** The newest stamp seen: the watch goes on from there where it can, else begins with a snapshot. */
  readonly after?: Stamp | undefined;
};

export const WatchRequest: Message<WatchRequest> = {
  typeName: "millrace.work.v1.WatchRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.job !== 0) {
      to.int64(16, message.job);
    }
    if (message.tenant !== undefined) {
      to.string(26, message.tenant);
    }
    if (message.after !== undefined) {
      const start = to.open(34);
      Stamp.write(message.after, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let job = before === undefined ? 0 : before.job;
    let tenant = before?.tenant;
    let after = before?.after;
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
          tenant = from.string();
          break;
        }
        case 34: {
          const stop = from.enter();
          after = Stamp.read(from, stop, after);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, job, tenant, after };
  },
};

/** One message of a watch. A watch that is refused fails. */
export type WatchResponse = {
  /** The message. */
  readonly message?:
    /** The job as it is. */
    | { readonly kind: "snapshot"; readonly value: WatchResponse_Snapshot }
    /** What happened. */
    | { readonly kind: "events"; readonly value: WatchResponse_Events }
    /** Nothing happened, and all is well. */
    | { readonly kind: "heartbeat"; readonly value: Stamp }
    /** The job has ended and everything has been said. */
    | { readonly kind: "end"; readonly value: Stamp }
    /** The owner has changed. */
    | { readonly kind: "moved"; readonly value: WatchResponse_Moved }
    | undefined;
};

export const WatchResponse: Message<WatchResponse> = {
  typeName: "millrace.work.v1.WatchResponse",
  write(message, to) {
    switch (message.message?.kind) {
      case "snapshot": {
        const start = to.open(10);
        WatchResponse_Snapshot.write(message.message.value, to);
        to.close(start);
        break;
      }
      case "events": {
        const start = to.open(18);
        WatchResponse_Events.write(message.message.value, to);
        to.close(start);
        break;
      }
      case "heartbeat": {
        const start = to.open(26);
        Stamp.write(message.message.value, to);
        to.close(start);
        break;
      }
      case "end": {
        const start = to.open(34);
        Stamp.write(message.message.value, to);
        to.close(start);
        break;
      }
      case "moved": {
        const start = to.open(42);
        WatchResponse_Moved.write(message.message.value, to);
        to.close(start);
        break;
      }
    }
  },
  read(from, end, before) {
    let message = before?.message;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          const stop = from.enter();
          message = { kind: "snapshot", value: WatchResponse_Snapshot.read(from, stop, message?.kind === "snapshot" ? message.value : undefined) };
          from.leave(stop);
          break;
        }
        case 18: {
          const stop = from.enter();
          message = { kind: "events", value: WatchResponse_Events.read(from, stop, message?.kind === "events" ? message.value : undefined) };
          from.leave(stop);
          break;
        }
        case 26: {
          const stop = from.enter();
          message = { kind: "heartbeat", value: Stamp.read(from, stop, message?.kind === "heartbeat" ? message.value : undefined) };
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          message = { kind: "end", value: Stamp.read(from, stop, message?.kind === "end" ? message.value : undefined) };
          from.leave(stop);
          break;
        }
        case 42: {
          const stop = from.enter();
          message = { kind: "moved", value: WatchResponse_Moved.read(from, stop, message?.kind === "moved" ? message.value : undefined) };
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { message };
  },
};

/** The job as it is: what was said before no longer matters. */
export type WatchResponse_Snapshot = {
  /** How fresh it is. */
  readonly stamp?: Stamp | undefined;
  /** The job. */
  readonly job?: JobView | undefined;
};

export const WatchResponse_Snapshot: Message<WatchResponse_Snapshot> = {
  typeName: "millrace.work.v1.WatchResponse.Snapshot",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.job !== undefined) {
      const start = to.open(18);
      JobView.write(message.job, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let job = before?.job;
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
          job = JobView.read(from, stop, job);
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, job };
  },
};

/** What happened since the last message. */
export type WatchResponse_Events = {
  /** How fresh it is. */
  readonly stamp?: Stamp | undefined;
  /** The events, oldest first. */
  readonly events: readonly Event[];
};

export const WatchResponse_Events: Message<WatchResponse_Events> = {
  typeName: "millrace.work.v1.WatchResponse.Events",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    for (const one of message.events) {
      const start = to.open(18);
      Event.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    const events: Event[] = before === undefined ? [] : (before.events as Event[]);
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
          events.push(Event.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, events };
  },
};

/** The owner has changed: resume elsewhere or later, from the newest stamp. */
export type WatchResponse_Moved = {
  /** Where the new owner may be. */
  readonly hint?: string | undefined;
};

export const WatchResponse_Moved: Message<WatchResponse_Moved> = {
  typeName: "millrace.work.v1.WatchResponse.Moved",
  write(message, to) {
    if (message.hint !== undefined) {
      to.string(10, message.hint);
    }
  },
  read(from, end, before) {
    let hint = before?.hint;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          hint = from.string();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { hint };
  },
};

/** Asks which node owns which shard. Any node answers. */
export type GetPartitionMapRequest = Readonly<Record<never, never>>;

export const GetPartitionMapRequest: Message<GetPartitionMapRequest> = {
  typeName: "millrace.work.v1.GetPartitionMapRequest",
  write() {},
  read(from, end) {
    while (from.pos < end) {
      const tag = from.tag();
      from.skip(tag);
    }
    return {};
  },
};

/** Which node owns which shard, as far as the node that was asked knows. */
export type GetPartitionMapResponse = {
  /** Names the cluster. */
  readonly clusterId: string;
  /** How many shards there are, counted from 0; this never changes. */
  readonly shards: number;
  /** All shards. */
  readonly ownerships: readonly GetPartitionMapResponse_Ownership[];
  /** All nodes. */
  readonly nodes: readonly GetPartitionMapResponse_Node[];
};

export const GetPartitionMapResponse: Message<GetPartitionMapResponse> = {
  typeName: "millrace.work.v1.GetPartitionMapResponse",
  write(message, to) {
    if (message.clusterId !== "") {
      to.string(10, message.clusterId);
    }
    if (message.shards !== 0) {
      to.int32(16, message.shards);
    }
    for (const one of message.ownerships) {
      const start = to.open(26);
      GetPartitionMapResponse_Ownership.write(one, to);
      to.close(start);
    }
    for (const one of message.nodes) {
      const start = to.open(34);
      GetPartitionMapResponse_Node.write(one, to);
      to.close(start);
    }
  },
  read(from, end, before) {
    let clusterId = before === undefined ? "" : before.clusterId;
    let shards = before === undefined ? 0 : before.shards;
    const ownerships: GetPartitionMapResponse_Ownership[] = before === undefined ? [] : (before.ownerships as GetPartitionMapResponse_Ownership[]);
    const nodes: GetPartitionMapResponse_Node[] = before === undefined ? [] : (before.nodes as GetPartitionMapResponse_Node[]);
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          clusterId = from.string();
          break;
        }
        case 16: {
          shards = from.int32();
          break;
        }
        case 26: {
          const stop = from.enter();
          ownerships.push(GetPartitionMapResponse_Ownership.read(from, stop));
          from.leave(stop);
          break;
        }
        case 34: {
          const stop = from.enter();
          nodes.push(GetPartitionMapResponse_Node.read(from, stop));
          from.leave(stop);
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { clusterId, shards, ownerships, nodes };
  },
};

/** One shard. */
export type GetPartitionMapResponse_Ownership = {
  /** The shard. */
  readonly shard: number;
  /** Grows with every change of owner; 0 if the shard never had an owner. */
  readonly epoch: number;
  /** The node that owns it. */
  readonly owner?: string | undefined;
  /** Where that node listens. */
  readonly address?: string | undefined;
  /** How long it still owns it unless its lease is renewed, which it usually is; negative when it ran out. */
  readonly remainingMs: number;
};

export const GetPartitionMapResponse_Ownership: Message<GetPartitionMapResponse_Ownership> = {
  typeName: "millrace.work.v1.GetPartitionMapResponse.Ownership",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.epoch !== 0) {
      to.int64(16, message.epoch);
    }
    if (message.owner !== undefined) {
      to.string(26, message.owner);
    }
    if (message.address !== undefined) {
      to.string(34, message.address);
    }
    if (message.remainingMs !== 0) {
      to.int64(40, message.remainingMs);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let epoch = before === undefined ? 0 : before.epoch;
    let owner = before?.owner;
    let address = before?.address;
    let remainingMs = before === undefined ? 0 : before.remainingMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 16: {
          epoch = from.int64();
          break;
        }
        case 26: {
          owner = from.string();
          break;
        }
        case 34: {
          address = from.string();
          break;
        }
        case 40: {
          remainingMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, epoch, owner, address, remainingMs };
  },
};

/** One node. */
export type GetPartitionMapResponse_Node = {
  /** Its name. */
  readonly node: string;
  /** Where it listens. */
  readonly address: string;
  /** It is on its way out: no new work for it. */
  readonly leaving: boolean;
  /** It was heard of within its time. */
  readonly alive: boolean;
  /** How long ago it was last heard of. */
  readonly seenAgoMs: number;
};

export const GetPartitionMapResponse_Node: Message<GetPartitionMapResponse_Node> = {
  typeName: "millrace.work.v1.GetPartitionMapResponse.Node",
  write(message, to) {
    if (message.node !== "") {
      to.string(10, message.node);
    }
    if (message.address !== "") {
      to.string(18, message.address);
    }
    if (message.leaving) {
      to.bool(24, message.leaving);
    }
    if (message.alive) {
      to.bool(32, message.alive);
    }
    if (message.seenAgoMs !== 0) {
      to.int64(40, message.seenAgoMs);
    }
  },
  read(from, end, before) {
    let node = before === undefined ? "" : before.node;
    let address = before === undefined ? "" : before.address;
    let leaving = before === undefined ? false : before.leaving;
    let alive = before === undefined ? false : before.alive;
    let seenAgoMs = before === undefined ? 0 : before.seenAgoMs;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 10: {
          node = from.string();
          break;
        }
        case 18: {
          address = from.string();
          break;
        }
        case 24: {
          leaving = from.bool();
          break;
        }
        case 32: {
          alive = from.bool();
          break;
        }
        case 40: {
          seenAgoMs = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { node, address, leaving, alive, seenAgoMs };
  },
};

/** Said by a shard's owner to the node that it hands the shard to. A hint only: whose it is is decided in the journal. */
export type TakeRequest = {
  /** The shard. */
  readonly shard: number;
  /** The lease was released in your favour: take it. Otherwise: read its log ahead of time. */
  readonly now: boolean;
};

export const TakeRequest: Message<TakeRequest> = {
  typeName: "millrace.work.v1.TakeRequest",
  write(message, to) {
    if (message.shard !== 0) {
      to.int32(8, message.shard);
    }
    if (message.now) {
      to.bool(16, message.now);
    }
  },
  read(from, end, before) {
    let shard = before === undefined ? 0 : before.shard;
    let now = before === undefined ? false : before.now;
    while (from.pos < end) {
      const tag = from.tag();
      switch (tag) {
        case 8: {
          shard = from.int32();
          break;
        }
        case 16: {
          now = from.bool();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { shard, now };
  },
};

/** The answer to Take, when done. */
export type TakeResponse = {
  /** How fresh the answer is. */
  readonly stamp?: Stamp | undefined;
  /** How many live claims the shard has. */
  readonly claims: number;
};

export const TakeResponse: Message<TakeResponse> = {
  typeName: "millrace.work.v1.TakeResponse",
  write(message, to) {
    if (message.stamp !== undefined) {
      const start = to.open(10);
      Stamp.write(message.stamp, to);
      to.close(start);
    }
    if (message.claims !== 0) {
      to.int64(16, message.claims);
    }
  },
  read(from, end, before) {
    let stamp = before?.stamp;
    let claims = before === undefined ? 0 : before.claims;
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
          claims = from.int64();
          break;
        }
        default:
          from.skip(tag);
      }
    }
    return { stamp, claims };
  },
};

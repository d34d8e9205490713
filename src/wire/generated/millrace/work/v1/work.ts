// Generated from proto/millrace/work/v1/work.proto: change that and run `npm run generate`.
import type { Service } from "#wire/message.ts";
import { BatchRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { BatchResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { CancelRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { CancelResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { CheckpointRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { CheckpointResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { CommitRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { CommitResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { DrainRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { DrainResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { FailRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { FailResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { InvalidateRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { InvalidateResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { LeaveRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { LeaveResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { LendQuotaRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { LendQuotaResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { RecordPlanRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { RecordPlanResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { ReleaseRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { ReleaseResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { RenewRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { RenewResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { ReportRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { ReportResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { ReserveRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { ReserveResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { ResumeRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { ResumeResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { SetTenantRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { SetTenantResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { SignalRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { SignalResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { StartRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { StartResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { SubmitRequest } from "#wire/generated/millrace/work/v1/commands.ts";
import { SubmitResponse } from "#wire/generated/millrace/work/v1/commands.ts";
import { CountJobsRequest } from "#wire/generated/millrace/work/v1/queries.ts";
import { CountJobsResponse } from "#wire/generated/millrace/work/v1/queries.ts";
import { GetJobRequest } from "#wire/generated/millrace/work/v1/queries.ts";
import { GetJobResponse } from "#wire/generated/millrace/work/v1/queries.ts";
import { GetPartitionMapRequest } from "#wire/generated/millrace/work/v1/queries.ts";
import { GetPartitionMapResponse } from "#wire/generated/millrace/work/v1/queries.ts";
import { GetStatsRequest } from "#wire/generated/millrace/work/v1/queries.ts";
import { GetStatsResponse } from "#wire/generated/millrace/work/v1/queries.ts";
import { GetTaskRequest } from "#wire/generated/millrace/work/v1/queries.ts";
import { GetTaskResponse } from "#wire/generated/millrace/work/v1/queries.ts";
import { ListExecutorsRequest } from "#wire/generated/millrace/work/v1/queries.ts";
import { ListExecutorsResponse } from "#wire/generated/millrace/work/v1/queries.ts";
import { ListJobsRequest } from "#wire/generated/millrace/work/v1/queries.ts";
import { ListJobsResponse } from "#wire/generated/millrace/work/v1/queries.ts";
import { PlanInputsRequest } from "#wire/generated/millrace/work/v1/queries.ts";
import { PlanInputsResponse } from "#wire/generated/millrace/work/v1/queries.ts";
import { TakeRequest } from "#wire/generated/millrace/work/v1/queries.ts";
import { TakeResponse } from "#wire/generated/millrace/work/v1/queries.ts";
import { WatchRequest } from "#wire/generated/millrace/work/v1/queries.ts";
import { WatchResponse } from "#wire/generated/millrace/work/v1/queries.ts";
import { WhyRequest } from "#wire/generated/millrace/work/v1/queries.ts";
import { WhyResponse } from "#wire/generated/millrace/work/v1/queries.ts";

/** For programs that submit work and programs that run it. */
export const Work = {
  typeName: "millrace.work.v1.Work",
  methods: {
    /** Asks for a job. */
    submit: {
      name: "Submit",
      path: "/millrace.work.v1.Work/Submit",
      request: SubmitRequest,
      response: SubmitResponse,
      streams: "none",
    },
    /** Says that a subscriber no longer waits for a job. */
    leave: {
      name: "Leave",
      path: "/millrace.work.v1.Work/Leave",
      request: LeaveRequest,
      response: LeaveResponse,
      streams: "none",
    },
    /** Stops a job. */
    cancel: {
      name: "Cancel",
      path: "/millrace.work.v1.Work/Cancel",
      request: CancelRequest,
      response: CancelResponse,
      streams: "none",
    },
    /** Tells the planner of a stage some news. */
    signal: {
      name: "Signal",
      path: "/millrace.work.v1.Work/Signal",
      request: SignalRequest,
      response: SignalResponse,
      streams: "none",
    },
    /** Asks for work. */
    reserve: {
      name: "Reserve",
      path: "/millrace.work.v1.Work/Reserve",
      request: ReserveRequest,
      response: ReserveResponse,
      streams: "none",
    },
    /** Says that the work on a claim has begun. */
    start: {
      name: "Start",
      path: "/millrace.work.v1.Work/Start",
      request: StartRequest,
      response: StartResponse,
      streams: "none",
    },
    /** Makes claims last. */
    renew: {
      name: "Renew",
      path: "/millrace.work.v1.Work/Renew",
      request: RenewRequest,
      response: RenewResponse,
      streams: "none",
    },
    /** Tells how far a task has got. */
    report: {
      name: "Report",
      path: "/millrace.work.v1.Work/Report",
      request: ReportRequest,
      response: ReportResponse,
      streams: "none",
    },
    /** Brings a task's result. Its blobs must have been uploaded before. */
    commit: {
      name: "Commit",
      path: "/millrace.work.v1.Work/Commit",
      request: CommitRequest,
      response: CommitResponse,
      streams: "none",
    },
    /** Brings a planner's answer. */
    recordPlan: {
      name: "RecordPlan",
      path: "/millrace.work.v1.Work/RecordPlan",
      request: RecordPlanRequest,
      response: RecordPlanResponse,
      streams: "none",
    },
    /** Ends an attempt without a result. */
    fail: {
      name: "Fail",
      path: "/millrace.work.v1.Work/Fail",
      request: FailRequest,
      response: FailResponse,
      streams: "none",
    },
    /** Records what an attempt has got so far: the next attempt at the task gets it with its grant. */
    checkpoint: {
      name: "Checkpoint",
      path: "/millrace.work.v1.Work/Checkpoint",
      request: CheckpointRequest,
      response: CheckpointResponse,
      streams: "none",
    },
    /** Gives a claim back, at no cost to the task's attempts. */
    release: {
      name: "Release",
      path: "/millrace.work.v1.Work/Release",
      request: ReleaseRequest,
      response: ReleaseResponse,
      streams: "none",
    },
    /** Says that a result is no longer any good, because its blobs are lost: the task is done again. */
    invalidate: {
      name: "Invalidate",
      path: "/millrace.work.v1.Work/Invalidate",
      request: InvalidateRequest,
      response: InvalidateResponse,
      streams: "none",
    },
    /** Many commands for one shard in one call. */
    batch: {
      name: "Batch",
      path: "/millrace.work.v1.Work/Batch",
      request: BatchRequest,
      response: BatchResponse,
      streams: "none",
    },
    /** Asks for a job with its stages and the first of its tasks. */
    getJob: {
      name: "GetJob",
      path: "/millrace.work.v1.Work/GetJob",
      request: GetJobRequest,
      response: GetJobResponse,
      streams: "none",
    },
    /** Asks for the jobs that the shard has in memory, newest first. */
    listJobs: {
      name: "ListJobs",
      path: "/millrace.work.v1.Work/ListJobs",
      request: ListJobsRequest,
      response: ListJobsResponse,
      streams: "none",
    },
    /** Asks how many jobs the shard has in memory that have not ended, by phase. */
    countJobs: {
      name: "CountJobs",
      path: "/millrace.work.v1.Work/CountJobs",
      request: CountJobsRequest,
      response: CountJobsResponse,
      streams: "none",
    },
    /** Asks for a task. */
    getTask: {
      name: "GetTask",
      path: "/millrace.work.v1.Work/GetTask",
      request: GetTaskRequest,
      response: GetTaskResponse,
      streams: "none",
    },
    /** Asks why a job's work is not running. */
    why: {
      name: "Why",
      path: "/millrace.work.v1.Work/Why",
      request: WhyRequest,
      response: WhyResponse,
      streams: "none",
    },
    /** Asks for what a planner has to go by. */
    planInputs: {
      name: "PlanInputs",
      path: "/millrace.work.v1.Work/PlanInputs",
      request: PlanInputsRequest,
      response: PlanInputsResponse,
      streams: "none",
    },
    /** Asks for the executors that the shard knows. */
    listExecutors: {
      name: "ListExecutors",
      path: "/millrace.work.v1.Work/ListExecutors",
      request: ListExecutorsRequest,
      response: ListExecutorsResponse,
      streams: "none",
    },
    /** Asks for a shard in numbers. */
    getStats: {
      name: "GetStats",
      path: "/millrace.work.v1.Work/GetStats",
      request: GetStatsRequest,
      response: GetStatsResponse,
      streams: "none",
    },
    /** Tells what happens to a job until it has ended. */
    watch: {
      name: "Watch",
      path: "/millrace.work.v1.Work/Watch",
      request: WatchRequest,
      response: WatchResponse,
      streams: "server",
    },
    /** Asks which node owns which shard. Any node answers. */
    getPartitionMap: {
      name: "GetPartitionMap",
      path: "/millrace.work.v1.Work/GetPartitionMap",
      request: GetPartitionMapRequest,
      response: GetPartitionMapResponse,
      streams: "none",
    },
  },
} as const satisfies Service;

/** For operators. */
export const Admin = {
  typeName: "millrace.work.v1.Admin",
  methods: {
    /** Gives an executor no more work until Resume. */
    drain: {
      name: "Drain",
      path: "/millrace.work.v1.Admin/Drain",
      request: DrainRequest,
      response: DrainResponse,
      streams: "none",
    },
    /** Gives an executor work again. */
    resume: {
      name: "Resume",
      path: "/millrace.work.v1.Admin/Resume",
      request: ResumeRequest,
      response: ResumeResponse,
      streams: "none",
    },
    /** Sets a tenant's share and limits. */
    setTenant: {
      name: "SetTenant",
      path: "/millrace.work.v1.Admin/SetTenant",
      request: SetTenantRequest,
      response: SetTenantResponse,
      streams: "none",
    },
  },
} as const satisfies Service;

/** For nodes among each other. */
export const Peer = {
  typeName: "millrace.work.v1.Peer",
  methods: {
    /** Asks a tenant's home shard to lend slots of its quota to another shard for a while. */
    lendQuota: {
      name: "LendQuota",
      path: "/millrace.work.v1.Peer/LendQuota",
      request: LendQuotaRequest,
      response: LendQuotaResponse,
      streams: "none",
    },
    /** Hands over a shard. */
    take: {
      name: "Take",
      path: "/millrace.work.v1.Peer/Take",
      request: TakeRequest,
      response: TakeResponse,
      streams: "none",
    },
  },
} as const satisfies Service;

/** Queries and their answers as messages of the work protocol, and back. */
import type { Answers, Query } from "#kernel/read/query.ts";
import type { Method } from "#wire/message.ts";
import type * as wire from "#wire/generated/millrace/work/v1/queries.ts";
import { Work } from "#wire/generated/millrace/work/v1/work.ts";
import { given } from "./commands.ts";
import * as views from "./views.ts";
import { each, jobPhases, noSuch, readPart } from "./enums.ts";

export type QueryKind = Query["kind"];
type QueryOf<K extends QueryKind> = Extract<Query, { kind: K }>;

type Messages = {
  job: [wire.GetJobRequest, wire.GetJobResponse];
  jobs: [wire.ListJobsRequest, wire.ListJobsResponse];
  count: [wire.CountJobsRequest, wire.CountJobsResponse];
  task: [wire.GetTaskRequest, wire.GetTaskResponse];
  why: [wire.WhyRequest, wire.WhyResponse];
  "plan-inputs": [wire.PlanInputsRequest, wire.PlanInputsResponse];
  executors: [wire.ListExecutorsRequest, wire.ListExecutorsResponse];
  stats: [wire.GetStatsRequest, wire.GetStatsResponse];
};

export type QueryRequestOf<K extends QueryKind> = Messages[K][0];
export type QueryResponseOf<K extends QueryKind> = Messages[K][1];

type Entry<K extends QueryKind> = {
  readonly method: Method<QueryRequestOf<K>, QueryResponseOf<K>>;
  /** The sender adds the shard. */
  readonly write: (query: QueryOf<K>) => Omit<QueryRequestOf<K>, "shard">;
  readonly read: (request: QueryRequestOf<K>) => Omit<QueryOf<K>, "kind">;
  /** The sender adds the stamp. */
  readonly writeAnswer: (answer: Answers[K]) => Omit<QueryResponseOf<K>, "stamp">;
  readonly readAnswer: (response: QueryResponseOf<K>) => Answers[K];
};

export const queryTable: { readonly [K in QueryKind]: Entry<K> } = {
  job: {
    method: Work.methods.getJob,
    write: (query) => query,
    read: ({ job, tenant, tasksMax, stage, tasksFrom }) => ({ job, ...given({ tenant, tasksMax, stage, tasksFrom }) }),
    writeAnswer: (job) => ({ job: views.writeJob(job) }),
    readAnswer: ({ job }) => readPart("job", job, views.readJob),
  },
  jobs: {
    method: Work.methods.listJobs,
    write: ({ phase, tags = [], ...query }) => ({
      ...query,
      tags,
      ...(phase && { phase: jobPhases.numberOf(phase) }),
    }),
    read: ({ tenant, door, limit, before, phase, tags, fromMs, toMs }) => ({
      ...given({ tenant, door }),
      limit,
      ...given({ before, fromMs, toMs }),
      ...(phase !== undefined && { phase: jobPhases.wordOf(phase) ?? noSuch("phase") }),
      ...(tags.length > 0 && { tags }),
    }),
    writeAnswer: ({ jobs }) => ({ jobs: jobs.map(views.writeLine) }),
    readAnswer: ({ jobs }) => ({ jobs: each("jobs", jobs, views.readLine) }),
  },
  count: {
    method: Work.methods.countJobs,
    write: ({ tags = [], ...query }) => ({ ...query, tags }),
    read: ({ tenant, door, tags, fromMs, toMs }) => ({
      ...given({ tenant, door, fromMs, toMs }),
      ...(tags.length > 0 && { tags }),
    }),
    writeAnswer: ({ phases, capped }) => ({
      phases: phases.map(({ phase, jobs }) => ({ phase: jobPhases.numberOf(phase), jobs })),
      capped,
    }),
    readAnswer: ({ phases, capped }) => ({
      phases: each("phases", phases, ({ phase, jobs }) => ({
        phase: jobPhases.wordOf(phase) ?? noSuch("phase"),
        jobs,
      })),
      capped,
    }),
  },
  task: {
    method: Work.methods.getTask,
    write: (query) => query,
    read: ({ task, tenant }) => ({ task, ...given({ tenant }) }),
    writeAnswer: (task) => ({ task: views.writeTask(task) }),
    readAnswer: ({ task }) => readPart("task", task, views.readTask),
  },
  why: {
    method: Work.methods.why,
    write: (query) => query,
    read: ({ job, tenant, stage, task }) => ({
      job,
      ...given({ tenant }),
      ...given({ stage }),
      ...given({ task }),
    }),
    writeAnswer: ({ why }) => ({ why: why.map(views.writeWhy) }),
    readAnswer: ({ why }) => ({ why: each("why", why, views.readWhy) }),
  },
  "plan-inputs": {
    method: Work.methods.planInputs,
    write: (query) => query,
    read: ({ task, token, from, limit }) => ({ task, token, ...given({ from }), limit }),
    writeAnswer: (inputs) => ({ inputs: views.writeInputs(inputs) }),
    readAnswer: ({ inputs }) => readPart("inputs", inputs, views.readInputs),
  },
  executors: {
    method: Work.methods.listExecutors,
    write: (query) => query,
    read: ({ tenant }) => given({ tenant }),
    writeAnswer: ({ executors }) => ({ executors }),
    readAnswer: ({ executors }) => ({ executors: executors.map(views.readExecutor) }),
  },
  stats: {
    method: Work.methods.getStats,
    write: () => ({}),
    read: () => ({}),
    writeAnswer: (stats) => ({ stats: views.writeStats(stats) }),
    readAnswer: ({ stats }) => readPart("stats", stats, views.readStats),
  },
};

/**
 * The typed client for everything that a shard can do. Ids are strings here (#base/ids.ts) and contain the shard. A
 * rejected command throws a RejectedError, any other failure a Fault. Every call takes an optional deadline and signal.
 */
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { AttemptRow } from "#base/history-rows.ts";
import { formatJob, formatTask, type JobRef, type ShardId } from "#base/ids.ts";
import { hash32, type Random } from "#base/random.ts";
import type { OfTenant, Submit } from "#kernel/model/command.ts";
import type { JobPhase, Notice, Signal, Tag } from "#kernel/model/model.ts";
import type { ExecutorView, JobView, TaskView, Why, WhyOf } from "#kernel/read/query.ts";
import type { Cluster, NodeSeen, Ownership } from "#journal/journal.ts";
import { askers, jobRef, taskRef } from "./ask.ts";
import type { Directory } from "./directory.ts";
import { executorClient, type ExecutorClient } from "./executor.ts";
import { gathering } from "./gather.ts";
import { manifestIn, viewOfHistory } from "./history.ts";
import { countJobs, type JobTotals } from "./count.ts";
import { rerunOf, submitAgain, type RerunOptions } from "./rerun.ts";
import { listJobs, type JobPage, type JobsFilter, type JobsQuery } from "./list.ts";
import type { Stamp } from "#shard/transport/protocol.ts";
import { isRejected, RejectedError } from "#shard/work/rejected.ts";
import { type AskOptions, type Router, type Watched } from "#shard/router/router.ts";

export type ClientPorts = {
  readonly router: Router;
  readonly directory: Directory;
  readonly random: Random;
  /** Reads a long text that the store keeps. */
  readonly texts?: (text: string) => Promise<string>;
};

/**
 * A submission as a door makes it. Submissions with the same shard key go to the same shard; merging, locks, request
 * keys and series work within a shard. Tags may be in any order.
 */
export type Order = Omit<Submit, "kind" | "keyFound" | "reuseEvidence"> & {
  readonly shardKey: string;
  /** Who is told when the job has ended: a stage of another job, by place or name, gets the signal `ended:<name>`. */
  readonly whenEnded?: readonly { readonly jobId: string; readonly stage: number | string; readonly name: string }[];
};
/** A request to wait together with others for a live job. A request key works as it does in an Order. */
export type Joining = Pick<Order, "shardKey" | "tenant" | "door" | "payloadHash" | "priority"> &
  Pick<Order, "requestKey" | "subscriber"> & { readonly mergeKey: string };
export type Submitted = {
  readonly jobId: string;
  readonly created: boolean;
  readonly merged: boolean;
  /** The job's number in its series. For a job that was known before and has left memory, its history has it. */
  readonly number?: number;
};

/**
 * A tenant's weight relative to others, and how many of its tasks may run (over all shards) and wait (in each); 0: no
 * limit.
 */
export type TenantStanding = { readonly weight: number; readonly runningMax: number; readonly queuedMax: number };

export type Job = {
  readonly jobId: string;
  /** False: the job has left memory, and this is its history. */
  readonly live: boolean;
  readonly view: JobView;
};

/** Of a job in memory: how many tasks, and of which stage from where on. History gives all that it has. */
export type TasksWanted = {
  readonly tasksMax?: number;
  readonly of?: { readonly stage: number; readonly tasksFrom: number };
};

export type CancelHow = {
  /** Without a grace for stages that run after any end; also for a job that is being cancelled already. */
  readonly hard?: boolean | undefined;
  /** Only this stage, by its name. */
  readonly stage?: string | undefined;
  readonly graceMs?: number | undefined;
};

export type WorkClient = ExecutorClient & {
  cluster(): Promise<Cluster>;
  nodes(): Promise<readonly NodeSeen[]>;
  shards(): Promise<readonly Ownership[]>;
  submit(order: Order, options?: AskOptions): Promise<Submitted>;
  /**
   * Submits a tracked job again, to the same shard. `judge` may refuse what is about to be submitted, by throwing. The
   * job must be of this tenant, if one is given.
   */
  rerun(
    jobId: string,
    options?: RerunOptions & { readonly tenant?: string | undefined; readonly judge?: (order: Order) => void },
  ): Promise<Submitted>;
  /** Starts no job. Undefined if no live job has the merge key. */
  join(joining: Joining, options?: AskOptions): Promise<Submitted | undefined>;
  job(jobId: string, options?: AskOptions & TasksWanted): Promise<Job>;
  /** Newest first, by time of submission; each job once, even if it ends in the meantime. Paged by cursor. */
  jobs(query: JobsQuery, options?: AskOptions): Promise<JobPage>;
  /**
   * How many jobs there are, by phase. The shards count what has not ended, history what has: it is a moment behind.
   */
  count(filter: JobsFilter, options?: AskOptions): Promise<JobTotals>;
  task(taskId: string, options?: AskOptions): Promise<TaskView & { readonly taskId: string; readonly jobId: string }>;
  /**
   * Explains everything that has not ended, or the named stage or task: for a wide job not every task is listed. With a
   * tenant, no executor of another tenant is named: give it whenever the answer goes to a caller of one tenant.
   */
  why(
    jobId: string,
    options?: AskOptions & { readonly of?: WhyOf & OfTenant },
  ): Promise<readonly (Why & { readonly taskId: string })[]>;
  /** Who has asked the job's shard for work, and what they offer; of one tenant's where a tenant is given. */
  executors(jobId: string, options?: AskOptions & OfTenant): Promise<readonly ExecutorView[]>;
  /** All attempts at the tasks of a job that has ended, ordered by token; none while the job is live. */
  attempts(jobId: string): Promise<readonly (AttemptRow & { readonly taskId: string })[]>;
  /** The manifest of a stage's earlier generation, where it has one and history has got so far. */
  manifestOf(jobId: string, stage: number, generation: number): Promise<Digest | undefined>;
  cancel(jobId: string, reason: string, options?: AskOptions & CancelHow): Promise<JobPhase>;
  /**
   * The task's output is lost: the task runs again, under the generation that is returned. Stages that consume it run
   * on, and are planned again if it comes out otherwise.
   */
  invalidate(taskId: string, generation: number, reason: string, options?: AskOptions): Promise<number>;
  /** The stage is given by name. A signal with an id counts once, however often it is sent. */
  signal(
    jobId: string,
    stage: string,
    signal: Omit<Signal, "id"> & { readonly id?: string },
    options?: AskOptions,
  ): Promise<boolean>;
  /** In every shard, one after the other. May be repeated: it changes nothing where the same is set already. */
  setTenant(tenant: string, standing: TenantStanding, options?: AskOptions): Promise<void>;
  leave(jobId: string, subscriber: string, options?: AskOptions): Promise<boolean>;
  /** Ends when the job has ended and all its events have been delivered. */
  watch(jobId: string, signal: AbortSignal, after?: Stamp): AsyncIterable<Watched>;
};

export function createClient(ports: ClientPorts): WorkClient {
  const { router, directory, random } = ports;
  const { command, query } = askers(router);
  /**
   * The number of shards is fixed when a cluster is created, and reading it is a round trip to the journal: ask once.
   */
  let shardsKnown: number | undefined;
  const shardsOf = async (): Promise<number> => (shardsKnown ??= (await directory.cluster()).shards);

  async function job(jobId: string, options: AskOptions & TasksWanted = {}): Promise<Job> {
    const ref = jobRef(jobId);
    const { tasksMax, of, ...rest } = options;
    try {
      const jobQuery = { kind: "job", job: ref.job, ...(tasksMax === undefined ? {} : { tasksMax }), ...of } as const;
      return { jobId, live: true, view: await query(ref.shard, jobQuery, rest) };
    } catch (error) {
      if (!isRejected(error, "job-unknown")) throw error;
      const history = await directory.history.job(ref.shard, ref.job);
      if (!history) throw error;
      return { jobId, live: false, view: viewOfHistory(history) };
    }
  }

  async function notices(
    wanted: Order["whenEnded"],
    options?: AskOptions,
  ): Promise<{ readonly notify?: readonly Notice[] }> {
    if (!wanted || wanted.length === 0) return {};
    const notify = wanted.map(async ({ jobId, stage, name }): Promise<Notice> => {
      const { shard, job: no } = jobRef(jobId);
      if (typeof stage === "number") return { shard, job: no, stage, name };
      const { view } = await job(jobId, { ...options, tasksMax: 0 });
      return { shard, job: no, stage: stageNamed("submit job", jobId, view, stage), name };
    });
    return { notify: await Promise.all(notify) };
  }

  async function submit({ shardKey, whenEnded, ...order }: Order, options?: AskOptions): Promise<Submitted> {
    const shard = shardOf(shardKey, await shardsOf());
    const tags = order.tags && { tags: order.tags.toSorted(byName) };
    const { job: no, ...reply } = await command(
      shard,
      { ...order, ...tags, ...(await notices(whenEnded, options)), kind: "submit" },
      options,
    );
    const { created, merged, number } = reply;
    return { jobId: formatJob(shard, no), created, merged, ...(number !== undefined && { number }) };
  }

  return {
    ...executorClient(command, query, random, gathering(router)),
    cluster: () => directory.cluster(),
    nodes: () => directory.nodes(),
    shards: () => directory.ownerships(),
    job,
    submit,

    async rerun(jobId, { tenant, judge, ...options } = {}) {
      const ref = jobRef(jobId);
      const found = await directory.history.job(ref.shard, ref.job);
      if (!found || (tenant !== undefined && found.job.tenant !== tenant))
        throw new Fault("not-found", "find job", { job: jobId });
      const again = await rerunOf(jobId, found, options, ports.texts);
      judge?.({ ...again, shardKey: "" });
      const { job: no, created, merged, number } = await submitAgain(again, (submit) => command(ref.shard, submit));
      return { jobId: formatJob(ref.shard, no), created, merged, ...(number !== undefined && { number }) };
    },

    join: (joining, options) => submit({ ...joining, ...nothingBegun }, options).catch(undefinedIfNothing),

    jobs: (jobQuery, options) =>
      listJobs(jobQuery, { directory, live: (shard, page) => query(shard, { kind: "jobs", ...page }, options) }),

    count: (filter, options) =>
      countJobs(filter, {
        directory,
        live: (shard, jobQuery) => query(shard, { kind: "count", ...jobQuery }, options),
      }),

    async task(taskId, options) {
      const ref = taskRef(taskId);
      const view = await query(ref.shard, { kind: "task", task: ref.task }, options);
      return { ...view, taskId, jobId: formatJob(ref.shard, view.job) };
    },

    async why(jobId, { of, ...options } = {}) {
      const ref = jobRef(jobId);
      const { why } = await query(ref.shard, { kind: "why", job: ref.job, ...of }, options);
      return why.map((each) => ({ ...each, taskId: formatTask(ref.shard, each.task) }));
    },

    async executors(jobId, { tenant, ...options } = {}) {
      const asked = { kind: "executors", ...(tenant !== undefined && { tenant }) } as const;
      return (await query(jobRef(jobId).shard, asked, options)).executors;
    },

    attempts: (jobId) => attemptsOf(directory, jobRef(jobId)),

    async manifestOf(jobId, stage, generation) {
      const ref = jobRef(jobId);
      return manifestIn(await directory.history.job(ref.shard, ref.job), stage, generation);
    },

    async cancel(jobId, reason, { hard, stage: stageName, graceMs, ...options } = {}) {
      const ref = jobRef(jobId);
      const view = stageName === undefined ? undefined : (await job(jobId, { ...options, tasksMax: 0 })).view;
      const cancel = {
        kind: "cancel" as const,
        job: ref.job,
        reason,
        ...(hard && { hard }),
        ...(view && { stage: stageNamed("cancel stage", jobId, view, stageName ?? "") }),
        ...(graceMs !== undefined && { graceMs }),
      };
      return (await command(ref.shard, cancel, options)).phase;
    },

    async invalidate(taskId, generation, reason, options) {
      const ref = taskRef(taskId);
      return (await command(ref.shard, { kind: "invalidate", task: ref.task, generation, reason }, options)).generation;
    },

    async signal(jobId, stageName, { id, name, payload, by }, options) {
      const ref = jobRef(jobId);
      const { view } = await job(jobId, { ...options, tasksMax: 0 });
      const stage = stageNamed("signal stage", jobId, view, stageName);
      const signal = {
        id: id ?? `s${random.next32().toString(36)}${random.next32().toString(36)}`,
        name,
        payload,
        ...(by !== undefined && { by }),
      };
      return (await command(ref.shard, { kind: "signal", job: ref.job, stage, signal }, options)).recorded;
    },

    async setTenant(tenant, standing, options) {
      const shards = await shardsOf();
      const home = shardOf(tenant, shards);
      for (let shard = 0; shard < shards; shard += 1)
        await command(shard, { kind: "set-tenant", tenant, ...standing, home }, options);
    },

    async leave(jobId, subscriber, options) {
      const ref = jobRef(jobId);
      return (await command(ref.shard, { kind: "leave", job: ref.job, subscriber }, options)).left;
    },

    watch: (jobId, signal, after) => watchJob(ports, jobRef(jobId), signal, after),
  };
}

const byName = (a: Tag, b: Tag): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

function undefinedIfNothing(error: unknown): undefined {
  if (!isRejected(error, "nothing-to-join")) throw error;
}

const nothingBegun = { joinOnly: true, name: "", spec: "", stages: [], deadlineMs: 0 } as const;

async function attemptsOf({ history }: Directory, { shard, job }: JobRef) {
  const { attempts = [] } = (await history.job(shard, job)) ?? {};
  const inOrder = attempts.toSorted((a, b) => a.task - b.task || a.token - b.token);
  return inOrder.map((row) => ({ ...row, taskId: formatTask(shard, row.task) }));
}

/** A job that has left memory is answered from history: one snapshot, then the end. */
async function* watchJob(
  { router, directory }: ClientPorts,
  { shard, job }: JobRef,
  signal: AbortSignal,
  after: Stamp | undefined,
): AsyncGenerator<Watched> {
  for await (const message of router.watch({ shard, job, ...(after && { after }) }, signal)) {
    if (message.kind !== "rejected") {
      yield message;
      continue;
    }
    const history = message.rejection.kind === "job-unknown" ? await directory.history.job(shard, job) : undefined;
    if (!history) throw new RejectedError("watch job", shard, message.rejection);
    yield { kind: "snapshot", stamp: message.stamp, view: viewOfHistory(history) };
    yield { kind: "end", stamp: message.stamp };
  }
}

function stageNamed(doing: string, jobId: string, { stages }: JobView, name: string): number {
  const found = stages.find((stage) => stage.name === name);
  if (found) return found.stage;
  const known = stages.map((stage) => stage.name).join(",");
  throw new Fault("not-found", doing, { job: jobId, stage: name, stages: known });
}

export const shardOf = (shardKey: string, shards: number): ShardId => hash32(shardKey) % shards;

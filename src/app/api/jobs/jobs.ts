/** Serves /v1/jobs. A job of another tenant and a job that does not exist get the same answer. */
import { Fault } from "#base/fault.ts";
import type { EndpointDeclaration } from "#http/endpoint.ts";
import type { Feed } from "#feed/feed.ts";
import { Problem } from "#http/problem.ts";
import { route, type Call, type Route } from "#http/route.ts";
import { lastEventId, type ServerEvent } from "#http/live/sse.ts";
import type { JobPhase } from "#kernel/model/model.ts";
import type { JobView, WhyBesides } from "#kernel/read/query.ts";
import type { Job, WorkClient } from "#shard/client/client.ts";
import { jobRef } from "#shard/client/ask.ts";
import { tagOf } from "#shard/client/history.ts";
import type { JobsFilter } from "#shard/client/list.ts";
import { isRejected } from "#shard/work/rejected.ts";
import {
  cancelJob,
  countJobs,
  followJob,
  listJobs,
  logOfTask,
  logsOfJob,
  resultsOfStage,
  showJob,
  signalJob,
  watchJob,
  watchJobs,
  whyJob,
} from "#api/jobs.ts";
import { explainJob, showWhy } from "#app/job-view.ts";
import { followEvents, logEvents, taskNamed, tasksListed, type OutputPorts } from "./job-output.ts";
import { detailsOf, nameOf, summaryOf } from "./jobs-view.ts";
import { stageResults, type StageResultsPorts } from "./stage-results.ts";
import { logReply } from "./task-log.ts";
import { listChanges } from "./list-changes.ts";
import { LiveLists } from "./live-lists.ts";
import { scopeOf, type Scoped } from "#app/api/scope.ts";
import { rerunRoute, submitRoute, type SubmitPorts } from "./submit.ts";

export type JobsPorts = OutputPorts &
  StageResultsPorts &
  SubmitPorts & {
    /** How long results of a door's jobs stay after their end; undefined where they are a cache. */
    readonly resultsKeptMs?: ((door: string) => number | undefined) | undefined;
    /** Says when a list has changed; left out: it is read again and again. */
    readonly feed?: Pick<Feed, "open"> | undefined;
  };

/** The largest number of tasks in an answer. */
const tasksShown = 200;
/** A job that changes all the time is sent no more often than this. */
const quietMs = 200;

export function jobsRoutes(ports: JobsPorts): readonly Route[] {
  const { work, clock } = ports;
  const { feed } = ports;
  const newest = new LiveLists({
    ...live,
    clock,
    read: async (key) => ({ data: await page(work, JSON.parse(key) as Wanted) }),
    changes: feed && ((key, signal) => listChanges(feed, JSON.parse(key) as Wanted, signal)),
  });
  const find = (call: CallParts & { readonly params: { readonly job: string } }, tasksMax = tasksShown): Promise<Job> =>
    jobOf(work, call.params.job, scopeOf(call), { tasksMax, signal: call.signal });
  const details = (job: string, view: JobView) =>
    detailsOf(job, view, clock.wallMs(), ports.resultsKeptMs?.(view.door));
  return [
    submitRoute(ports),
    rerunRoute(ports, scopeOf),
    route(listJobs, async (call) => ({ body: await page(work, { tenant: scopeOf(call), ...call.query }) })),
    route(countJobs, async (call) => ({ body: await count(work, { tenant: scopeOf(call), ...call.query }) })),
    route(watchJobs, (call) => ({
      body: newest.follow(JSON.stringify({ tenant: scopeOf(call), ...call.query }), call.signal),
    })),
    route(showJob, async (call) => ({ body: details(call.params.job, (await find(call)).view) })),
    route(watchJob, async (call) => {
      const { view } = await find(call); // a missing job is a 404, not an empty stream
      return { body: changes(ports, call.params.job, details(call.params.job, view), call.signal) };
    }),
    route(whyJob, async (call) => {
      const { job } = call.params;
      const { task } = call.query;
      const { view, live } = await find(call, task === undefined ? tasksShown : tasksListed);
      // The view has said that the job has ended, but not that others are still to hear of it.
      const why = (live ? await whyOf(work, job, view, call) : []).filter(({ because }) => because.kind !== "ended");
      const tasks = why.map(({ taskId, stage, key, phase, because, ...besides }) => ({
        task: taskId,
        stage: nameOf(stage, view.stages),
        key,
        phase,
        because: { ...because },
        says: showWhy({ because, ...besides }),
        ...besidesOf(besides),
      }));
      const hot = tasks.length > 0 ? await hotLines(work, job, view.tenant) : [];
      return { body: { tasks, lines: [...hot, ...explainJob(job, view, ports.doors)] } };
    }),
    route(resultsOfStage, async (call) => {
      const { stage } = call.params;
      return { body: await stageResults(ports, { job: await find(call), stage, ...call.query, signal: call.signal }) };
    }),
    ...outputRoutes(ports, find),
    ...changingRoutes(ports, find),
  ];
}

async function whyOf(
  work: JobsPorts["work"],
  job: string,
  view: JobView,
  call: CallParts & { readonly query: { readonly task?: string | undefined } },
): Promise<Awaited<ReturnType<JobsPorts["work"]["why"]>>> {
  const { task: named } = call.query;
  const tenant = scopeOf(call);
  const task = named === undefined ? {} : { task: taskNamed(job, view, named) };
  try {
    return await work.why(job, { of: { ...task, ...(tenant !== undefined && { tenant }) }, signal: call.signal });
  } catch (error) {
    // It left memory after it was found.
    if (isRejected(error, "job-unknown")) return [];
    throw error;
  }
}

/** A job in a hot shard may wait for nothing but that. */
async function hotLines(work: JobsPorts["work"], jobId: string, tenant: string): Promise<readonly string[]> {
  const { shard } = jobRef(jobId);
  const [ownerships, nodes] = await Promise.all([work.shards(), work.nodes()]);
  const owner = ownerships.find((row) => row.shard === shard && row.remainingMs > 0)?.owner;
  const { hotShard, hotPercent, heavyTenant, heavyPercent } = nodes.find(({ node }) => node === owner)?.facts ?? {};
  // One tenant does not hear of another.
  const whose = heavyTenant === tenant ? `tenant ${tenant}` : "another tenant";
  const heavy = heavyTenant === undefined ? [] : [`work of ${whose} takes ${heavyPercent} % of the time of ${owner}`];
  if (hotShard !== shard) return heavy;
  return [
    ...heavy,
    `shard ${shard}, which has the job, is hot: it takes ${hotPercent} % of the time of ${owner}. ` +
      `\`millrace shards isolate ${shard}\` keeps that node for it.`,
  ];
}

type CallParts = Scoped & Pick<Call<EndpointDeclaration>, "signal">;
type FindJob = (call: CallParts & { readonly params: { readonly job: string } }, tasksMax?: number) => Promise<Job>;

const outputRoutes = (ports: OutputPorts, find: FindJob): readonly Route[] => [
  route(logsOfJob, async (call) => {
    const { params, query, headers, url, signal } = call;
    const { view } = await find(call, tasksListed);
    const task = query.task === undefined ? undefined : taskNamed(params.job, view, query.task);
    const wanted = { jobId: params.job, view, task, follow: query.follow === true, signal };
    return { body: logEvents(ports, { ...wanted, lastEventId: lastEventId(headers, url) }) };
  }),
  route(logOfTask, async (call) => {
    const { params, query, headers, signal } = call;
    const { view } = await find(call, tasksListed);
    const task = taskNamed(params.job, view, params.task);
    return await logReply(ports, { jobId: params.job, view, task, stream: query.stream, headers, signal });
  }),
  route(followJob, async (call) => {
    const { params, query, headers, url, signal } = call;
    const { view } = await find(call);
    const wanted = { jobId: params.job, view, follow: true, output: query.output === true, signal };
    return { body: followEvents(ports, { ...wanted, lastEventId: lastEventId(headers, url) }) };
  }),
];

const changingRoutes = ({ work, kinds }: JobsPorts, find: FindJob): readonly Route[] => [
  route(cancelJob, async (call) => {
    await find(call);
    const { params, body, caller, signal } = call;
    // The record says who cancelled a job: that is who was authenticated, whatever the reason claims.
    const reason = `cancelled by ${caller.principal.name}${body.reason === "" ? "" : `: ${body.reason}`}`;
    const { hard, stage, graceMs } = body;
    const phase = await work.cancel(params.job, reason, { signal, hard, stage, graceMs });
    return { body: { job: params.job, phase } };
  }),
  route(signalJob, async (call) => {
    const { view } = await find(call);
    const { params, body, caller } = call;
    const { stage, id, name, payload } = body;
    const { name: who, roles } = caller.principal;
    const by = { name: who, roles, isOperator: roles.has("operator") };
    const refused = kinds.refuseSignal(view.door, { id: id ?? "", name, payload }, by, { stage, spec: view.spec });
    if (refused !== undefined) throw new Problem(403, refused);
    const recorded = await work.signal(params.job, stage, {
      name,
      payload,
      by: by.name,
      ...(id !== undefined && { id }),
    });
    return { body: { job: params.job, recorded } };
  }),
];

type Filters = {
  readonly tenant: string | undefined;
  readonly phase?: JobPhase | undefined;
  readonly door?: string | undefined;
  readonly tag?: readonly string[] | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
};
type Wanted = Filters & { readonly limit: number; readonly cursor?: string | undefined };

const besidesOf = ({ checkpoint, failures, pending, second }: WhyBesides) => ({
  ...(checkpoint && { checkpoint }),
  ...(failures && { failures }),
  ...(pending && { pending: [...pending] }),
  ...(second !== undefined && { second }),
});

const filterOf = ({ tenant, phase, door, tag = [], from, to }: Filters): JobsFilter => ({
  ...(tenant !== undefined && { tenant }),
  ...(phase && { phase }),
  ...(door !== undefined && { door }),
  ...(tag.length > 0 && { tags: tag.map(tagOf) }),
  ...(from !== undefined && { fromMs: Date.parse(from) }),
  ...(to !== undefined && { toMs: Date.parse(to) }),
});

async function count(work: WorkClient, filters: Filters) {
  const { phases, capped, unreachable } = await work.count(filterOf(filters));
  const jobs = Object.values(phases).reduce((sum, each) => sum + each, 0);
  return { jobs, phases, capped, unreachable: [...unreachable] };
}

const live = { everyMs: 1_000, quietMs: 60_000, listsMax: 200, viewersMax: 2_000 };

async function page(work: WorkClient, { limit, cursor, ...filters }: Wanted) {
  const {
    jobs,
    cursor: next,
    unreachable,
  } = await work.jobs({
    ...filterOf(filters),
    limit,
    ...(cursor !== undefined && { cursor }),
  });
  return { items: jobs.map(summaryOf), unreachable: [...unreachable], ...(next !== undefined && { next }) };
}

async function jobOf(
  work: WorkClient,
  jobId: string,
  tenant: string | undefined,
  options: { readonly tasksMax: number; readonly signal: AbortSignal },
): Promise<Job> {
  const missing = new Fault("not-found", "find job", { job: jobId });
  try {
    const job = await work.job(jobId, options);
    if (tenant === undefined || job.view.tenant === tenant) return job;
  } catch (error) {
    if (!isRejected(error, "job-unknown") && !isMalformed(error)) throw error;
  }
  throw missing;
}

const isMalformed = (error: unknown): boolean => error instanceof Fault && error.code === "invalid";

/** Yields the job as it is, then after each change, at most once per `quietMs`; the last one has ended. */
async function* changes(
  { work, clock, resultsKeptMs }: Pick<JobsPorts, "work" | "clock" | "resultsKeptMs">,
  job: string,
  first: ReturnType<typeof detailsOf>,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent<ReturnType<typeof detailsOf>>> {
  yield { data: first };
  if (first.endedAt !== undefined) return;
  let sentMs = clock.monotonicMs();
  let id: string | undefined;
  for await (const message of work.watch(job, signal)) {
    if (message.kind === "heartbeat" || message.kind === "rejected") continue;
    id = `${message.stamp.epoch}-${message.stamp.seq}`;
    const waitMs = sentMs + quietMs - clock.monotonicMs();
    if (message.kind !== "end" && waitMs > 0) await clock.sleep(waitMs, signal);
    const { view } = await work.job(job, { tasksMax: tasksShown, signal });
    sentMs = clock.monotonicMs();
    yield { id, data: detailsOf(job, view, clock.wallMs(), resultsKeptMs?.(view.door)) };
    if (view.endedAtMs !== undefined) return;
  }
}

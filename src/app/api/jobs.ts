/** Serves /v1/jobs. A job of another tenant and a job that does not exist get the same answer. */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { route, type Route } from "#http/route.ts";
import type { ServerEvent } from "#http/sse.ts";
import type { Job, WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { JobPhase } from "#kernel/model/model.ts";
import { LiveLists, type LiveListOptions } from "./live-lists.ts";
import { cancelJob, listJobs, showJob, signalJob, watchJob, watchJobs, whyJob } from "#api/jobs.ts";
import { detailsOf, nameOf, summaryOf } from "./jobs-view.ts";

export type JobsPorts = { readonly work: WorkClient; readonly clock: Clock };

/** Tasks that an answer shows at most. */
const tasksShown = 200;
/** A job that changes all the time is sent no more often. */
const quietMs = 200;

export function jobsRoutes({ work, clock }: JobsPorts): readonly Route[] {
  const newest = new LiveLists(async (key) => ({ data: await page(work, JSON.parse(key) as Wanted) }), clock, live);
  const find = (job: string, tenant: string, signal: AbortSignal): Promise<Job> => jobOf(work, job, tenant, signal);
  return [
    route(listJobs, async ({ query, tenant }) => ({ body: await page(work, { tenant, ...query }) })),
    route(watchJobs, ({ query, tenant, signal }) => ({
      body: newest.follow(JSON.stringify({ tenant, ...query }), signal),
    })),
    route(showJob, async ({ params: { job }, tenant, signal }) => {
      const { view } = await find(job, tenant, signal);
      return { body: detailsOf(job, view) };
    }),
    route(watchJob, async ({ params: { job }, tenant, signal }) => {
      const { view } = await find(job, tenant, signal); // a missing job is a 404, not an empty stream
      return { body: changes({ work, clock }, job, detailsOf(job, view), signal) };
    }),
    route(whyJob, async ({ params: { job }, tenant, signal }) => {
      const { view, live } = await find(job, tenant, signal);
      const why = live && view.endedAtMs === undefined ? await work.why(job, { signal }) : [];
      const tasks = why.map(({ taskId, stage, key, phase, because }) => {
        return { task: taskId, stage: nameOf(stage, view.stages), key, phase, because: { ...because } };
      });
      return { body: { tasks } };
    }),
    route(cancelJob, async ({ params: { job }, body: { reason }, tenant, signal }) => {
      await find(job, tenant, signal);
      return { body: { job, phase: await work.cancel(job, reason) } };
    }),
    route(signalJob, async ({ params: { job }, body: { stage, id, ...rest }, tenant, signal }) => {
      await find(job, tenant, signal);
      const recorded = await work.signal(job, stage, { ...rest, ...(id !== undefined && { id }) });
      return { body: { job, recorded } };
    }),
  ];
}

type Wanted = {
  readonly tenant: string;
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly phase?: JobPhase | undefined;
  readonly door?: string | undefined;
};

const live: LiveListOptions = { everyMs: 1_000, listsMax: 200, viewersMax: 2_000 };

async function page(work: WorkClient, { tenant, limit, cursor, phase, door }: Wanted) {
  const {
    jobs,
    cursor: next,
    unreachable,
  } = await work.jobs({
    tenant,
    limit,
    ...(cursor !== undefined && { cursor }),
    ...(phase && { phase }),
    ...(door !== undefined && { door }),
  });
  return { items: jobs.map(summaryOf), unreachable: [...unreachable], ...(next !== undefined && { next }) };
}

async function jobOf(work: WorkClient, jobId: string, tenant: string, signal: AbortSignal): Promise<Job> {
  const missing = new Fault("not-found", "find job", { job: jobId });
  try {
    const job = await work.job(jobId, { tasksMax: tasksShown, signal });
    if (job.view.tenant === tenant) return job;
  } catch (error) {
    if (!isRejected(error, "job-unknown") && !isMalformed(error)) throw error;
  }
  throw missing;
}

const isMalformed = (error: unknown): boolean => error instanceof Fault && error.code === "invalid";

/** The job as it is, then each time it has changed, at most once in `quietMs`; the last one has ended. */
async function* changes(
  { work, clock }: JobsPorts,
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
    yield { id, data: detailsOf(job, view) };
    if (view.endedAtMs !== undefined) return;
  }
}

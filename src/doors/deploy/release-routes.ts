/** Serves what people ask about releases: the list, the plan, the drift; and pause and abort. */
import { Fault, isFault } from "#base/fault.ts";
import type { Clock } from "#base/clock.ts";
import { route, type Route } from "#http/route.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { ListedJob } from "#shard/client/list.ts";
import { isRejected } from "#shard/work/rejected.ts";
import * as endpoints from "./endpoints.ts";
import { keys as counted } from "./fleet/census.ts";
import { driftOf } from "./fleet/drift.ts";
import type { Fleet } from "./fleet/fleet.ts";
import type { GoalStore } from "./fleet/goals.ts";
import type { ReleaseControls } from "./fleet/controls.ts";
import { door, shaTag } from "./plan.ts";
import { frozenBy } from "./service/freeze.ts";

export type ReleaseRoutePorts = {
  readonly client: WorkClient;
  readonly goals: GoalStore;
  readonly fleet: Fleet;
  readonly controls: ReleaseControls;
  readonly clock: Clock;
};

const listMax = 200;
/** How long the way back may take after an abort. */
const backMsMax = 30 * 60_000;

export const releaseRoutes = (ports: ReleaseRoutePorts): readonly Route[] => [
  listRoute(ports),
  planRoute(ports),
  driftRoute(ports),
  route(endpoints.pauseRelease, async ({ params, body, caller, tenant }) => {
    await requireRelease(ports.client, params.job, tenant);
    await ports.controls.setPaused(tenant, params.job, body.paused, caller.principal.name);
    return undefined;
  }),
  route(endpoints.abortRelease, async ({ params, caller, tenant }) => {
    await requireRelease(ports.client, params.job, tenant);
    await ports.controls.setPaused(tenant, params.job, false, caller.principal.name);
    // The last stage runs however the job ends, and rolls back.
    await ports.client.cancel(params.job, `aborted by ${caller.principal.name}`, { graceMs: backMsMax });
    return undefined;
  }),
];

const listRoute = ({ client, clock }: ReleaseRoutePorts): Route =>
  route(endpoints.listReleases, async ({ tenant }) => {
    const { jobs } = await client.jobs({ tenant, door, limit: listMax });
    return { body: { jobs: await Promise.all(jobs.map((job) => rowOf(job, client, clock))) } };
  });

async function rowOf(job: ListedJob, client: WorkClient, clock: Clock) {
  const isLive = job.endedAtMs === undefined;
  // Renewals of claims are not logged: what a live job's executors last said is asked of its shard's owner.
  const seen = isLive ? await client.executors(job.jobId).catch(() => []) : [];
  const agoMs = seen
    .filter(({ claims }) => claims > 0)
    .reduce((least, each) => Math.min(least, each.seenAgoMs), Infinity);
  const heardMs = isLive ? (agoMs === Infinity ? undefined : clock.wallMs() - agoMs) : job.endedAtMs;
  return {
    id: job.jobId,
    created_at: new Date(job.submittedAtMs).toISOString(),
    commit_sha: job.tags?.find(({ name }) => name === shaTag)?.value ?? null,
    name: job.name,
    status: statusOf(job.phase),
    last_heartbeat: heardMs === undefined ? null : new Date(heardMs).toISOString(),
    live: isLive,
  };
}

function statusOf(phase: string): "queued" | "running" | "succeeded" | "failed" {
  if (phase === "SUCCEEDED") return "succeeded";
  if (phase === "FAILED" || phase === "CANCELLED") return "failed";
  return phase === "WAITING" ? "queued" : "running";
}

const planRoute = ({ fleet, goals, clock }: ReleaseRoutePorts): Route =>
  route(endpoints.planOfRelease, async ({ body, tenant }) => {
    const { service } = body;
    const { regions, labels } = service.targets;
    // Which machines come first depends on the release's number, how many does not.
    const about = { tenant, service: service.service, regions, labels, manifest: null, release: "plan" };
    const shares = service.waves.map(({ share }) => ({ sharePpm: share, regions }));
    const census = await fleet.census({ ...about, silentAfterMs: Number.MAX_SAFE_INTEGER, waves: shares });
    const sum = (key: (region: string) => string): number =>
      regions.reduce((all, region) => all + census.of(key(region)), 0);
    const machines = sum(counted.machines);
    let before = 0;
    const waves = service.waves.map(({ share, bake, approve }, index) => {
      const count = sum((region) => counted.member(index, region));
      const added = Math.max(0, count - before);
      before = Math.max(before, count);
      return { wave: index + 1, sharePpm: share, machines: count, added, bakeMs: bake, approvals: approve };
    });
    const notes: string[] = [];
    if (machines === 0) notes.push("no machine matches the targets at the moment: the first wave would wait");
    const frozen = frozenBy(service.freeze, clock.wallMs());
    if (frozen) notes.push(`frozen now (${frozen.text}): waves would wait for its end`);
    for (const region of service.targets.regions) {
      const goal = (await goals.head({ tenant, service: service.service, region }))?.goal;
      if (goal?.halted) notes.push(`${region}: the service is halted; resume it first`);
      if (goal)
        notes.push(`${region}: version ${goal.version} is the goal; the release would write ${goal.version + 1}`);
      else notes.push(`${region}: there is no goal yet`);
    }
    return { body: { waves, notes } };
  });

const driftRoute = ({ fleet, goals }: ReleaseRoutePorts): Route =>
  route(endpoints.showDrift, async ({ params, query, tenant }) => {
    const { after, limit } = query;
    const regions = query.regions.split(",").filter((each) => each !== "");
    const heads = await Promise.all(regions.map(async (region) => await goals.head({ tenant, ...params, region })));
    const drift = heads.flatMap((head) => (head ? [head.goal] : []));
    const { machines, next } = await fleet.page({ tenant, after, limit, regions, drift });
    const shown = machines.flatMap((one) => drift.flatMap((goal) => driftOf(one, goal) ?? []));
    return { body: { machines: shown, next } };
  });

/** To callers of another tenant a release is as unknown as one that does not exist. */
export async function requireRelease(client: WorkClient, job: string, tenant: string): Promise<void> {
  const found = await client.job(job, { tasksMax: 0 }).catch((error: unknown) => {
    if (isRejected(error, "job-unknown") || isFault(error, "invalid")) return undefined;
    throw error;
  });
  if (found?.view.tenant !== tenant || found.view.door !== door) throw new Fault("not-found", "find release", { job });
}

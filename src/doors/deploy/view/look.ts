/** Gathers what is known about a release, for one tenant's callers. */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { JobView } from "#kernel/read/query.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { ReleaseControls } from "#doors/deploy/fleet/controls.ts";
import type { CensusQuestion } from "#doors/deploy/fleet/census.ts";
import type { Fleet } from "#doors/deploy/fleet/fleet.ts";
import type { GoalStore } from "#doors/deploy/fleet/goals.ts";
import type { Goal } from "#doors/deploy/goal/goal.ts";
import { door, type Release, type RollbackSpec } from "#doors/deploy/plan.ts";
import { holdOf } from "#doors/deploy/run/may-begin.ts";
import { specWithService } from "#doors/deploy/service/stored.ts";
import { waveRegions } from "#doors/deploy/service/wave-regions.ts";
import { manifestOf, regionsOf, serviceNameOf, silentAfterOf, type About, type Facts } from "./release-view.ts";
import type { TellFacts } from "./tell.ts";

export type LookPorts = {
  readonly client: Pick<WorkClient, "job" | "why">;
  readonly goals: Pick<GoalStore, "head" | "stable">;
  readonly fleet: Fleet;
  readonly controls: Pick<ReleaseControls, "paused">;
  readonly clock: Clock;
};

export type ReleaseOfTenant = { readonly tenant: string; readonly job: string };

export async function lookAt(ports: LookPorts, { tenant, job }: ReleaseOfTenant): Promise<Facts> {
  const view = await findJob(ports.client, tenant, job);
  const about = view && aboutOf(view);
  if (!about) throw new Fault("not-found", "find release", { job });
  const regions = regionsOf(about);
  const goals = new Map<string, Goal>();
  for (const region of regions) {
    const head = await ports.goals.head({ tenant, service: serviceNameOf(about), region });
    if (head) goals.set(region, head.goal);
  }
  const labels =
    about.kind === "release" ? about.release.service.targets.labels : (goals.values().next().value?.labels ?? []);
  const known = { jobId: job, view, about, goals };
  const census = await ports.fleet.census(questionOf({ tenant, labels, ...known }));
  return { ...known, census, paused: await ports.controls.paused(tenant, job) };
}

type Asked = Omit<Facts, "census" | "paused"> & Pick<CensusQuestion, "tenant" | "labels">;

/** What the nodes are to count for the release. */
export function questionOf({ tenant, labels, ...facts }: Asked): CensusQuestion {
  const { about, jobId: release } = facts;
  const service = about.kind === "release" ? about.release.service : undefined;
  const waves = service?.waves.map(({ share }, index) => ({ sharePpm: share, regions: waveRegions(service, index) }));
  return {
    tenant,
    service: serviceNameOf(about),
    regions: [...regionsOf(about)],
    labels: [...labels],
    manifest: manifestOf(facts),
    silentAfterMs: silentAfterOf(about),
    release,
    waves: waves?.map((wave) => ({ ...wave, regions: [...wave.regions] })) ?? [],
  };
}

export async function tellFactsOf(ports: LookPorts, wanted: ReleaseOfTenant): Promise<TellFacts> {
  const facts = await lookAt(ports, wanted);
  const isOver = facts.view.endedAtMs !== undefined;
  const waits = isOver ? [] : await ports.client.why(wanted.job, { of: { tenant: wanted.tenant } });
  const { about } = facts;
  const hold = about.kind === "release" ? await holdOf(ports, wanted.tenant, about.release) : undefined;
  return { ...facts, hold: hold?.why, waits };
}

/** To callers of another tenant a release is as unknown as one that does not exist. */
async function findJob(client: LookPorts["client"], tenant: string, job: string): Promise<JobView | undefined> {
  try {
    const { view } = await client.job(job);
    return view.tenant === tenant && view.door === door ? view : undefined;
  } catch (error) {
    if (isRejected(error, "job-unknown") || isFault(error, "invalid")) return undefined;
    throw error;
  }
}

/** Undefined for builds, which are jobs of this door as well. */
function aboutOf({ spec, stages }: JobView): About | undefined {
  if (stages.some(({ name }) => name === "finish")) return { kind: "release", release: specWithService<Release>(spec) };
  if (!stages.some(({ name }) => name === "rollback")) return undefined;
  return { kind: "rollback", rollback: JSON.parse(spec) as RollbackSpec };
}

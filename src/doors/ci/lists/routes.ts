/** Serves the parts of runs one by one, and the runners that could take them. */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { formatJob } from "#base/ids.ts";
import { decodeCursor, encodeCursor } from "#http/cursor.ts";
import { route, type Route } from "#http/route.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { effectsTag } from "#effects/effects.ts";
import type { RunDetails } from "#doors/ci/endpoints.ts";
import { door } from "#doors/ci/plan.ts";
import { findRun, listedRun, taskOf } from "#doors/ci/runs/look.ts";
import { attemptsOfHistory, attemptsSoFar } from "./attempts.ts";
import * as endpoints from "./endpoints.ts";
import { groupsOf, type RunnerView, runnersOf } from "./runners.ts";

export type ListPorts = {
  readonly client: Pick<WorkClient, "job" | "jobs" | "attempts" | "executors" | "cluster">;
  readonly clock: Clock;
  readonly shown: (run: string, tenant: string) => Promise<z.input<typeof RunDetails>>;
};

const repeatsMax = 50;
/** Where a page ended: a stage of the run, which keeps its place, and a cell of it, once it is planned. */
const Place = z.tuple([z.int().min(0), z.int().min(0)]);

export const listRoutes = (ports: ListPorts): readonly Route[] => [...jobRoutes(ports), ...runnerRoutes(ports)];

const jobRoutes = ({ client, shown }: ListPorts): readonly Route[] => [
  route(endpoints.listRunJobs, async ({ params: { run }, query: { limit, cursor, status }, tenant }) => {
    const { jobs } = await shown(run, tenant);
    const [stage, cell] = cursor === undefined ? [0, -1] : decodeCursor(cursor, Place);
    const rest = placed(jobs).filter(
      ({ job, at }) => (status ?? job.status) === job.status && (at[0] - stage || at[1] - cell) > 0,
    );
    const page = rest.slice(0, limit);
    const last = rest.length > limit ? page.at(-1) : undefined;
    return { body: { items: page.map(({ job }) => job), ...(last && { next: encodeCursor(last.at) }) } };
  }),
  route(endpoints.showRunJob, async ({ params: { run, job }, tenant }) => {
    const { jobs } = await shown(run, tenant);
    return { body: jobNamed(jobs, run, job) };
  }),
  route(endpoints.listRunAttempts, async ({ params: { run }, tenant }) => {
    const { view } = await findRun(client, run, tenant);
    const root = view.tags?.find(({ name }) => name === effectsTag)?.value ?? run;
    const tags = [{ name: effectsTag, value: root }];
    const { jobs } = await client.jobs({ tenant, door, limit: repeatsMax, tags });
    const first = root === run ? view : (await findRun(client, root, tenant).catch(() => undefined))?.view;
    const repeats = jobs.filter(({ jobId }) => jobId !== root).map((job) => listedRun(job));
    const items = first ? [listedRun({ ...first, jobId: root }), ...repeats.toReversed()] : repeats.toReversed();
    return { body: { items } };
  }),
  route(endpoints.listJobAttempts, async ({ params: { run, job }, tenant }) => {
    const { view } = await findRun(client, run, tenant);
    const task = taskOf(run, view, job);
    const kept = (await client.attempts(run)).filter((row) => row.task === task);
    const live = view.tasks.find((one) => one.task === task);
    return { body: { items: [...(kept.length > 0 || !live ? attemptsOfHistory(kept) : attemptsSoFar(live))] } };
  }),
];

type Jobs = z.input<typeof RunDetails>["jobs"];

function placed(jobs: Jobs): readonly { readonly job: Jobs[number]; readonly at: readonly [number, number] }[] {
  let at: readonly [number, number] = [0, -1];
  return jobs.map((job, index) => {
    at = index === 0 || jobs[index - 1]?.id === job.id ? [at[0], at[1] + 1] : [at[0] + 1, 0];
    return { job, at };
  });
}

function jobNamed(jobs: Jobs, run: string, named: string) {
  const byId = jobs.find(({ job }) => job === named);
  const byName = jobs.filter(({ id, name }) => id === named || name === named);
  if (byId) return byId;
  const [found, another] = byName;
  if (found && !another) return found;
  const why = another ? "several jobs have that name; give the job's id" : "the run has no such job, or none yet";
  throw new Fault(another ? "invalid" : "not-found", "find the job", { run, job: named.slice(0, 200), why });
}

const runnerRoutes = (ports: ListPorts): readonly Route[] => [
  route(endpoints.listRunners, async ({ query: { group, label }, tenant }) => {
    const items = (await runnersFor(ports, tenant)).filter(
      ({ groups, labels }) =>
        (group === undefined || groups.includes(group.toLowerCase())) &&
        (label === undefined || labels.includes(label.toLowerCase())),
    );
    return { body: { items } };
  }),
  route(endpoints.listRunnerGroups, async ({ tenant }) => ({
    body: { items: groupsOf(await runnersFor(ports, tenant)) },
  })),
];

/** All shards: a runner may ask some of them only. */
export async function runnersFor(
  { client, clock }: Pick<ListPorts, "client" | "clock">,
  tenant: string,
): Promise<RunnerView[]> {
  const { shards } = await client.cluster();
  const seen = [];
  for (let shard = 0; shard < shards; shard += 1)
    seen.push(...(await client.executors(formatJob(shard, 0), { tenant })));
  return [...runnersOf(seen, clock.wallMs())];
}

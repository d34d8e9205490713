/** Serves the calls about environments, approvals and deployments. */
import type { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import { route, type Route } from "#http/route.ts";
import type { JobView } from "#kernel/read/query.ts";
import type { Sources } from "#sources/sources.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { readCellResult } from "#doors/ci/result.ts";
import { findRun } from "#doors/ci/runs/look.ts";
import { findStored, type StoredRun } from "#doors/ci/runs/record.ts";
import { viewRun } from "#doors/ci/view.ts";
import type { Deployment, Deployments } from "./deployments.ts";
import * as endpoints from "./endpoints.ts";
import type { Environments } from "./environments.ts";
import { type Pending, pendingIn, review } from "./waiting.ts";

export type EnvironmentPorts = {
  readonly client: WorkClient;
  readonly clock: Clock;
  readonly blobs: BlobStore;
  readonly sources: Pick<Sources, "get">;
  readonly environments: Environments;
  readonly deployments: Deployments;
};

export const environmentRoutes = (ports: EnvironmentPorts): readonly Route[] => [
  ...rulesRoutes(ports),
  ...reviewRoutes(ports),
  route(endpoints.listDeployments, async ({ params, query: { environment, limit }, tenant }) => {
    const { name: repository } = await ports.sources.get(tenant, `${params.owner}/${params.name}`);
    const found = await ports.deployments.list(tenant, { repository, environment }, limit);
    const shown = await Promise.all(found.map((one) => deploymentOf(ports.client, tenant, one)));
    return { body: { deployments: withInactive(shown) } };
  }),
];

const timeOf = (ms: number): string => new Date(ms).toISOString();

const rulesRoutes = ({ sources, environments, clock }: EnvironmentPorts): readonly Route[] => [
  route(endpoints.listEnvironments, async ({ params: { owner, name }, tenant }) => {
    const { name: repository } = await sources.get(tenant, `${owner}/${name}`);
    const all = await environments.list(tenant, repository);
    const shown = all.map(({ environment, rules, by, atMs }) => ({ environment, rules, by, at: timeOf(atMs) }));
    return { body: { environments: shown } };
  }),
  route(endpoints.putEnvironment, async ({ params: { owner, name, environment }, body, tenant, caller }) => {
    const { name: repository } = await sources.get(tenant, `${owner}/${name}`);
    const by = caller.principal.name;
    await environments.set(tenant, { repository, environment, rules: body, by, atMs: clock.wallMs() });
    return undefined;
  }),
  route(endpoints.removeEnvironment, async ({ params: { owner, name, environment }, tenant }) => {
    const { name: repository } = await sources.get(tenant, `${owner}/${name}`);
    if (await environments.remove(tenant, { repository, environment })) return undefined;
    throw new Fault("not-found", "remove the rules of an environment", { repository, environment });
  }),
];

const reviewRoutes = (ports: EnvironmentPorts): readonly Route[] => [
  route(endpoints.listApprovals, async ({ params: { run }, tenant }) => {
    const { pending } = await waitingIn(ports, run, tenant);
    return { body: { waiting: shownOf(pending) } };
  }),
  route(endpoints.reviewRun, async ({ params: { run }, body, tenant, caller }) => {
    const { view, pending, stored } = await waitingIn(ports, run, tenant);
    const said = { ...body, environments: body.environments, person: caller.principal.name };
    const reviewed = await review(ports.client, { run, view, pending, actor: stored?.about.actor ?? "" }, said);
    return { body: { reviewed: [...reviewed] } };
  }),
];

async function waitingIn(
  ports: EnvironmentPorts,
  run: string,
  tenant: string,
): Promise<{ readonly view: JobView; readonly stored: StoredRun | undefined; readonly pending: readonly Pending[] }> {
  const { view, about } = await findRun(ports.client, run, tenant);
  const stored = await findStored(ports.blobs, about.record);
  return { view, stored, pending: stored ? await pendingIn(ports, view, stored) : [] };
}

/** Jobs that wait for the same are shown together. */
function shownOf(pending: readonly Pending[]): z.input<typeof endpoints.Waiting>[] {
  const shown = new Map<string, z.input<typeof endpoints.Waiting>>();
  for (const { stage, rules, approvedBy, sinceMs } of pending) {
    const known = shown.get(rules.environment.toLowerCase());
    if (known) known.jobs.push(stage);
    else
      shown.set(rules.environment.toLowerCase(), {
        environment: rules.environment,
        jobs: [stage],
        reviewers: [...rules.reviewers],
        approvals: rules.approvals,
        approvedBy: [...approvedBy],
        ...(rules.waitMs > 0 && sinceMs !== undefined && { waitsUntil: timeOf(sinceMs + rules.waitMs) }),
      });
  }
  return [...shown.values()];
}

type Shown = z.input<typeof endpoints.DeploymentView>;

async function deploymentOf(client: WorkClient, tenant: string, one: Deployment): Promise<Shown> {
  const { environment, run, stage, ref, sha, by, atMs } = one;
  const shared = { environment, run, job: stage, ref, sha, by, at: timeOf(atMs) };
  const found = await findRun(client, run, tenant).catch((error: unknown) => {
    if (isFault(error, "not-found")) return undefined; // history has forgotten it
    throw error;
  });
  if (!found) return { ...shared, state: "inactive" };
  const { view } = found;
  const job = viewRun(view).jobs.find(({ id }) => id === stage);
  const tasks = view.tasks.filter((task) => view.stages.find((at) => at.stage === task.stage)?.name === stage);
  const url = tasks.flatMap(({ result }) => (result && readCellResult(result.payload)?.environmentUrl) ?? []).at(0);
  return { ...shared, state: stateOf(job), ...(url !== undefined && { url }) };
}

function stateOf(job: { readonly status: string; readonly conclusion?: string } | undefined): Shown["state"] {
  if (!job || job.conclusion === "skipped") return "inactive";
  if (job.conclusion === "success" || job.conclusion === "failure") return job.conclusion;
  if (job.conclusion === "cancelled") return "error";
  return job.status === "in_progress" ? "in_progress" : "queued";
}

/** The newest are first: behind one that succeeded, those of the same environment are no longer what is there. */
function withInactive(shown: readonly Shown[]): Shown[] {
  const succeeded = new Set<string>();
  return shown.map((one) => {
    const key = one.environment.toLowerCase();
    const isOver = one.state === "success" && succeeded.has(key);
    if (one.state === "success") succeeded.add(key);
    return isOver ? { ...one, state: "inactive" as const } : one;
  });
}

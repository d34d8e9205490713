/** Serves what tasks call with the token of their claim, and what they left. */
import {
  getArtifact,
  getOwnArtifact,
  listArtifacts,
  listOwnArtifacts,
  putArtifact,
  putCheckpoint,
  reportStep,
} from "#api/task-calls.ts";
import { isFault } from "#base/fault.ts";
import type { Caller } from "#access/caller.ts";
import type { ClaimOf } from "#access/principal.ts";
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { Step } from "#kernel/model/model.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { JobArtifact, JobArtifacts } from "#app/work/job-artifacts.ts";
import { executorOf, type TaskCheckpoints } from "#app/work/task-checkpoints.ts";

export type TaskCallPorts = {
  readonly work: Pick<WorkClient, "task" | "job" | "report">;
  readonly artifacts: JobArtifacts;
  readonly checkpoints: TaskCheckpoints;
};

export function taskRoutes({ work, artifacts, checkpoints }: TaskCallPorts): readonly Route[] {
  const one = async (tenant: string, job: string, name: string) => {
    const found = await artifacts.find(tenant, job, name);
    if (!found) throw new Problem(404, "name: the job has no such artifact");
    const headers = { "content-length": String(found.sizeBytes), "x-millrace-digest": found.digest };
    return { headers, body: artifacts.read(found) };
  };
  const page = async (
    tenant: string,
    job: string,
    query: { readonly limit: number; readonly cursor?: string | undefined },
  ) => {
    const { artifacts: found, cursor } = await artifacts.list(tenant, job, query);
    return { body: { items: found.map(shown), ...(cursor !== undefined && { next: cursor }) } };
  };
  return [
    route(putArtifact, async ({ caller, params: { name }, body }) => ({
      body: shown(await artifacts.put(claimOf(caller), name, body)),
    })),
    route(getOwnArtifact, async ({ caller, params: { name } }) => {
      const { tenant, job } = claimOf(caller);
      return await one(tenant, job, name);
    }),
    route(listOwnArtifacts, async ({ caller, query }) => {
      const { tenant, job } = claimOf(caller);
      return await page(tenant, job, query);
    }),
    route(reportStep, async ({ caller, body }) => {
      await report(work, claimOf(caller), body);
      return undefined;
    }),
    route(putCheckpoint, async ({ caller, body }) => ({ body: await checkpoints.put(claimOf(caller), body) })),
    route(getArtifact, async ({ tenant, params: { job, name } }) => {
      await requireJob(work, job, tenant);
      return await one(tenant, job, name);
    }),
    route(listArtifacts, async ({ tenant, params: { job }, query }) => {
      await requireJob(work, job, tenant);
      return await page(tenant, job, query);
    }),
  ];
}

/** The policy lets tasks in only, and those have a claim. */
function claimOf({ principal: { claim } }: Caller): ClaimOf {
  if (!claim) throw new Problem(403, "only a task calls this, with the token that it was given");
  return claim;
}

/** To callers of another tenant a job is as unknown as one that does not exist. */
async function requireJob(work: Pick<WorkClient, "job">, job: string, tenant: string): Promise<void> {
  const found = await work.job(job, { tasksMax: 0 }).catch((error: unknown) => {
    if (isRejected(error, "job-unknown") || isFault(error, "not-found") || isFault(error, "invalid")) return undefined;
    throw error;
  });
  if (found?.view.tenant !== tenant) throw new Problem(404, "job: there is no such job");
}

/**
 * The number of a step is the node's: one of the same name keeps its own. Numbers up to this are the runner's, whose
 * reports arrive a moment later and must not take the number of a step that its process reported first.
 */
const stepOfRunnerMax = 1_000;

async function report(
  work: Pick<WorkClient, "task" | "report">,
  { task: taskId, token }: ClaimOf,
  { name, status }: Pick<Step, "name" | "status">,
): Promise<void> {
  const { steps, claims } = await work.task(taskId);
  const executor = executorOf(claims, token);
  const step =
    steps.find((known) => known.name === name)?.step ??
    Math.max(stepOfRunnerMax, ...steps.map((known) => known.step)) + 1;
  await work.report({ executor, taskId, token }, [{ step, name, status }]);
}

const shown = ({ name, sizeBytes, digest, task, attempt, putAtMs, untilMs }: JobArtifact) => ({
  name,
  sizeBytes,
  digest,
  task,
  attempt,
  putAt: new Date(putAtMs).toISOString(),
  keptUntil: new Date(untilMs).toISOString(),
});

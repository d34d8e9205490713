/** What the node answers about queries. */
import { Fault, isFault } from "#base/fault.ts";
import { route, type Route } from "#http/route.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { showQuery } from "./endpoints.ts";
import { door } from "./plan.ts";
import { viewBatch } from "./view.ts";

const tasksMax = 100_000;

export const batchRoutes = ({ client }: { readonly client: Pick<WorkClient, "job"> }): readonly Route[] => [
  route(showQuery, async ({ params: { job }, tenant, signal }) => {
    const missing = new Fault("not-found", "show query", { job, why: "there is no such query" });
    const found = await client.job(job, { tasksMax, signal }).catch((error: unknown) => {
      throw isRejected(error, "job-unknown") || isFault(error, "invalid") ? missing : error;
    });
    const { view } = found;
    // Another tenant's is as none.
    if (view.door !== door || view.tenant !== tenant) throw missing;
    const sum = (of: (stage: (typeof view.stages)[number]) => number): number =>
      view.stages.reduce((all, stage) => all + of(stage), 0);
    const { plan, foreseen, stages, result, written, failure, phase } = viewBatch(view);
    return {
      body: {
        job,
        name: view.name,
        phase,
        ended: view.endedAtMs !== undefined,
        tasks: sum(({ tasks }) => tasks),
        done: sum(({ done }) => done),
        submittedAt: new Date(view.submittedAtMs).toISOString(),
        ...(view.endedAtMs !== undefined && { endedAt: new Date(view.endedAtMs).toISOString() }),
        ...(foreseen !== undefined && { foreseen }),
        stages: stages.map((stage) => ({ ...stage, why: [...stage.why] })),
        ...(plan !== undefined && { plan }),
        ...(result && { result: [...result] }),
        ...(written && { written }),
        ...(failure !== undefined && { failure }),
      },
    };
  }),
];

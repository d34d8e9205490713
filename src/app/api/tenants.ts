/** Serves /v1/tenants. */
import { authorize } from "#access/policy.ts";
import { setTenant } from "#api/tenants.ts";
import { refusalProblem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { WorkClient } from "#shard/client/client.ts";

export const tenantRoutes = (work: Pick<WorkClient, "setTenant">): readonly Route[] => [
  route(setTenant, async ({ params: { name }, body, caller, signal }) => {
    // The path names the tenant, so it is judged here as well.
    const judged = authorize(caller.principal, setTenant.action, name);
    if (!judged.ok) throw refusalProblem(judged.refusal);
    await work.setTenant(name, body, { signal });
    return { body: { tenant: name, ...body } };
  }),
];

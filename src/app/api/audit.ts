/**
 * Serves /v1/audit, and has every change under /v1 recorded.
 *
 * AU4 A change that is audited is made only when its entry is durable: without it the call is refused, and nothing is
 *     done. That it failed afterwards is a second entry.
 */
import { authorize, policy, type Action } from "#access/policy.ts";
import { allTenants } from "#access/principal.ts";
import { exportAudit, listAudit } from "#api/audit.ts";
import type { AuditFacts } from "#audit/chain.ts";
import type { AuditTrail } from "#audit/trail.ts";
import type { Clock } from "#base/clock.ts";
import { Problem, refusalProblem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { Caller } from "#access/caller.ts";

/** Calls that work makes all the time: jobs and results have a log of their own, which says who submitted them. */
const unaudited: ReadonlySet<Action> = new Set<Action>([
  "health",
  "service.describe",
  "work.submit",
  "work.execute",
  "effect.write",
  "build.execute",
  "deploy.attach",
  "task.artifacts",
  "worker.register", // recorded when it succeeds: anybody may ask
  "worker.self",
  "task.report",
  "task.checkpoint",
  "cache.read",
  "cache.write",
  "action-cache.read",
  "action-cache.write",
]);

export const isAudited = ({ method, action }: Pick<Route, "method" | "action">): boolean =>
  method !== "GET" && !unaudited.has(action);

export function auditRoutes(trail: AuditTrail): readonly Route[] {
  const chainOf = (caller: Caller, tenant: string, wanted: "tenant" | "cluster"): string => {
    if (wanted === "tenant") return tenant;
    const judged = authorize(caller.principal, "cluster.admin");
    if (!judged.ok) throw refusalProblem(judged.refusal);
    return allTenants;
  };
  return [
    route(listAudit, async ({ tenant, caller, query: { limit, cursor, trail: wanted } }) => {
      const page = await trail.list(chainOf(caller, tenant, wanted), limit, cursor);
      return { body: { items: [...page.entries], ...(page.cursor !== undefined && { next: page.cursor }) } };
    }),
    route(exportAudit, ({ tenant, caller, query: { trail: wanted } }) => ({
      body: trail.export(chainOf(caller, tenant, wanted)),
    })),
  ];
}

/** The same routes; those that change something record it first. */
export const audited = (routes: readonly Route[], trail: AuditTrail, clock: Pick<Clock, "wallMs">): readonly Route[] =>
  routes.map((each) => (isAudited(each) ? recorded(each, trail, clock) : each));

function recorded(each: Route, trail: AuditTrail, clock: Pick<Clock, "wallMs">): Route {
  return {
    ...each,
    async handle(call) {
      const { caller, params, query, tenant } = call;
      const chain = policy[each.action].of === "cluster" ? allTenants : tenant;
      const { principal, address } = caller;
      const facts = (): AuditFacts => ({
        at: new Date(clock.wallMs()).toISOString(),
        who: { name: principal.name, tenant: principal.tenant, proof: principal.proof, address },
        action: each.action,
        call: each.name,
        of: named({ ...(query as object), ...(params as object) }),
        outcome: "asked",
      });
      const { seq } = await trail.append(chain, facts()).catch((cause: unknown) => {
        throw new Problem(503, "the audit trail cannot be written, so nothing was done: try again", { cause });
      });
      try {
        return await each.handle(call);
      } catch (error) {
        const why = `${seq}: ${error instanceof Error ? error.message : String(error)}`.slice(0, 500);
        await trail.append(chain, { ...facts(), outcome: "failed", why }).catch(() => undefined);
        throw error;
      }
    },
  };
}

const named = (fields: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]: [string, unknown]) =>
      ["string", "number", "boolean"].includes(typeof value) ? [[name, String(value).slice(0, 200)]] : [],
    ),
  );

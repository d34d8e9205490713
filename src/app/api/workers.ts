/** Serves /v1/workers. */
import {
  createWorkerToken,
  leaveWorker,
  listWorkers,
  listWorkerTokens,
  registerWorker,
  removeWorker,
  renewWorker,
  revokeWorkerToken,
} from "#api/workers.ts";
import { authorize } from "#access/policy.ts";
import { allTenants, type Principal } from "#access/principal.ts";
import type { Caller } from "#access/caller.ts";
import { Problem, refusalProblem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { MemberRecord, RegistrationRecord, WorkerRegistry } from "#app/workers/registry.ts";

export type WorkerRoutePorts = {
  readonly registry: WorkerRegistry;
  /** Records that a worker registered: its caller had no credentials of its own. */
  readonly registered: (tenant: string, worker: string, address: string) => Promise<void>;
};

export const workerRoutes = ({ registry, registered }: WorkerRoutePorts): readonly Route[] => [
  route(createWorkerToken, async ({ tenant, caller, body: { everyTenant, ephemeral, ...body } }) => {
    const owner = everyTenant ? allTenants : tenant;
    if (everyTenant) requireOperator(caller);
    const { record, token } = await registry.makeToken(owner, caller.principal.name, {
      ...body,
      isEphemeral: ephemeral,
    });
    return { status: 201, headers: { "cache-control": "no-store" }, body: { ...shownToken(record), token } };
  }),
  route(listWorkerTokens, async ({ tenant, caller, query }) => {
    const { records, cursor } = await registry.registrations.list({ ...scope(caller, tenant), ...query });
    return { body: { items: records.map(shownToken), ...(cursor !== undefined && { next: cursor }) } };
  }),
  route(revokeWorkerToken, async ({ tenant, caller, params: { id } }) => {
    for (const owner of owners(caller, tenant)) if (await registry.registrations.remove(owner, id)) return undefined;
    throw new Problem(404, "id: there is no such token; list them with GET /v1/workers/tokens");
  }),
  route(listWorkers, async ({ tenant, caller, query }) => {
    const { records, cursor } = await registry.members.list({ ...scope(caller, tenant), ...query });
    return { body: { items: records.map(shownWorker), ...(cursor !== undefined && { next: cursor }) } };
  }),
  route(removeWorker, async ({ tenant, caller, params: { id } }) => {
    for (const owner of owners(caller, tenant)) if (await registry.members.remove(owner, id)) return undefined;
    throw new Problem(404, "id: there is no such worker; list them with GET /v1/workers");
  }),
  route(registerWorker, async ({ caller: { address }, body: { token, instance, ...about } }) => {
    const { tenant, ...credential } = await registry.register(token, instance, about);
    await registered(tenant, credential.name, address);
    return { headers: { "cache-control": "no-store" }, body: credential };
  }),
  route(renewWorker, async ({ caller, body }) => {
    const { tenant: _tenant, ...credential } = await registry.renew(workerOf(caller), body);
    return { headers: { "cache-control": "no-store" }, body: credential };
  }),
  route(leaveWorker, async ({ caller }) => {
    const { tenant, worker = "" } = workerOf(caller);
    await registry.members.remove(tenant, worker);
    return undefined;
  }),
];

function workerOf({ principal }: Caller): Principal {
  if (principal.worker !== undefined) return principal;
  throw new Problem(403, "only a worker that registered calls this, with its own token");
}

function requireOperator({ principal }: Caller): void {
  const judged = authorize(principal, "worker.admin", allTenants);
  if (!judged.ok) throw refusalProblem(judged.refusal);
}

/** An operator sees the shared ones, too: those of all tenants. */
const isOfAll = ({ principal: { tenant } }: Caller): boolean => tenant === allTenants;
const scope = (caller: Caller, tenant: string) => (isOfAll(caller) ? {} : { tenant });
const owners = (caller: Caller, tenant: string): readonly string[] =>
  isOfAll(caller) ? [tenant, allTenants] : [tenant];

const shownToken = ({ tenant, name: id, value }: RegistrationRecord) => ({
  id,
  tenant,
  name: value.name,
  pools: value.pools,
  labels: value.labels,
  isEphemeral: value.isEphemeral,
  usesLeft: value.uses - value.used.length,
  until: new Date(value.untilMs).toISOString(),
  by: value.by,
});

const shownWorker = ({ tenant, name: id, value: { registeredAtMs, seenAtMs, ...value } }: MemberRecord) => ({
  id,
  tenant,
  ...value,
  registeredAt: new Date(registeredAtMs).toISOString(),
  seenAt: new Date(seenAtMs).toISOString(),
});

/**
 * Who may ask what of a shard: every request of the work protocol as an action of the one policy table. Whoever is of
 * one tenant is narrowed to it: what it may not see is answered as if it were not there.
 */
import type { Admission, Admitted } from "#edge/admission.ts";
import type { Action } from "#edge/policy.ts";
import { allTenants } from "#edge/principal.ts";
import type { Command, CommandKind } from "#kernel/command.ts";
import type { Query } from "#kernel/query.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { Narrow } from "#shard/grpc-serve.ts";
import { isInternal, type internalKinds, type ShardRequest } from "#shard/protocol.ts";

type AskedKind = Exclude<CommandKind, (typeof internalKinds)[number]>;

export const commandActions: Readonly<Record<AskedKind, Action>> = {
  submit: "work.submit",
  leave: "work.submit",
  cancel: "work.cancel",
  signal: "work.signal",
  reserve: "work.execute",
  start: "work.execute",
  renew: "work.execute",
  report: "work.execute",
  commit: "work.execute",
  "record-plan": "work.execute",
  fail: "work.execute",
  release: "work.execute",
  invalidate: "work.execute",
  drain: "work.admin",
  resume: "work.admin",
  "set-tenant": "work.admin",
  "lend-quota": "cluster.admin",
};

export const queryActions: Readonly<Record<Query["kind"], Action>> = {
  job: "work.read",
  jobs: "work.read",
  task: "work.read",
  why: "work.read",
  "plan-inputs": "work.execute",
  executors: "cluster.read",
  stats: "cluster.map",
};

export function workPolicy(admission: Admission): Narrow<Admitted> {
  const judge = (principal: Admitted, action: Action, given: string | undefined): string | undefined => {
    // Whoever is of one tenant, and does not say which it means, means its own.
    const own = principal && principal.tenant !== allTenants ? principal.tenant : undefined;
    const tenant = given ?? own;
    admission.require(principal, action, tenant);
    return tenant;
  };

  function command<C extends Command>(principal: Admitted, asked: C): C {
    const { kind } = asked;
    if (isInternal(kind) || !Object.hasOwn(commandActions, kind)) return asked; // for the host to refuse
    const tenant = judge(principal, commandActions[kind as AskedKind], "tenant" in asked ? asked.tenant : undefined);
    if ("executor" in asked) ownName(principal, asked.executor);
    return tenant !== undefined && narrowed.has(kind) ? { ...asked, tenant } : asked;
  }

  return {
    request(principal, request): ShardRequest {
      switch (request.kind) {
        case "command":
          return { ...request, command: command(principal, request.command) };
        case "commands":
          return { ...request, commands: request.commands.map((one) => command(principal, one)) };
        case "query": {
          const { query } = request;
          const tenant = judge(principal, queryActions[query.kind], "tenant" in query ? query.tenant : undefined);
          const isNarrowed = tenant !== undefined && queryActions[query.kind] === "work.read";
          return isNarrowed ? { ...request, query: { ...query, tenant } as Query } : request;
        }
        case "take":
          admission.require(principal, "cluster.admin");
          return request;
      }
    },
    watch(principal, request) {
      const tenant = judge(principal, "work.read", request.tenant);
      return tenant === undefined ? request : { ...request, tenant };
    },
  };
}

/** Commands whose tenant may be left out, and then means all of them. */
const narrowed: ReadonlySet<CommandKind> = new Set(["cancel", "signal", "reserve"]);

/** A claim is its executor's own: nobody speaks in another's name. */
function ownName(principal: Admitted, executor: string): void {
  if (!principal || principal.roles.has("operator")) return;
  if (executor === principal.name || String(executor).startsWith(`${principal.name}/`)) return;
  throw new GrpcError(
    grpcCode.permissionDenied,
    `${principal.name} may call itself ${principal.name} or ${principal.name}/..., and not otherwise`,
  );
}

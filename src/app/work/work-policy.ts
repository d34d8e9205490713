/**
 * Authorises requests to a shard: every request of the work protocol is an action of the policy table. A caller of one
 * tenant is restricted to it: another tenant's work is answered as if it did not exist. Submitted work is checked
 * against the door that its kind belongs to, for every submitter.
 */
import type { Admission, Admitted } from "#edge/port/admission.ts";
import type { Action } from "#access/policy.ts";
import { allTenants } from "#access/principal.ts";
import type { Command, CommandKind } from "#kernel/model/command.ts";
import type { JobView, Query } from "#kernel/read/query.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { KindTable, Submitter } from "#shard/door-kinds.ts";
import type { Lookup, Narrow } from "#shard/transport/grpc-serve.ts";
import { isInternal, type internalKinds, type ShardRequest } from "#shard/transport/protocol.ts";
import { refusedLabel } from "./executor-labels.ts";
import { outOfBounds, outOfTaskBounds, type WorkBounds } from "#app/config/work-config.ts";
import { setsOf } from "#kernel/model/task-set.ts";

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
  checkpoint: "work.execute",
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
  count: "work.read",
  task: "work.read",
  why: "work.read",
  "plan-inputs": "work.execute",
  executors: "cluster.read",
  stats: "cluster.map",
};

/** Commands that name a job, a task or claimable work: without a tenant they would mean all tenants. */
const narrowed: ReadonlySet<CommandKind> = new Set([
  "leave",
  "cancel",
  "signal",
  "reserve",
  "start",
  "report",
  "commit",
  "record-plan",
  "fail",
  "checkpoint",
  "release",
  "invalidate",
]);

/** What was submitted is judged by these. */
type WorkRules = { readonly bounds: WorkBounds; readonly kinds: KindTable };

export function workPolicy(admission: Admission, rules: WorkRules): Narrow<Admitted> {
  const names = new OwnNames();

  function command(caller: Admitted, requested: Command): Command {
    const { kind } = requested;
    if (isInternal(kind) || !Object.hasOwn(commandActions, kind)) return requested; // for the host to refuse
    const tenant = tenantOf(caller, "tenant" in requested ? requested.tenant : undefined);
    admission.require(caller, commandActions[kind as AskedKind], tenant);
    checkWork(caller, requested, rules);
    const executor = "executor" in requested ? names.of(caller, requested.executor) : undefined;
    return withCaller(attributed(caller, requested), executor, narrowed.has(kind) ? tenant : undefined);
  }

  /** Returns the same list if nothing in it had to be changed. */
  function commands(caller: Admitted, requested: readonly Command[]): readonly Command[] {
    let changed: Command[] | undefined;
    for (let i = 0; i < requested.length; i += 1) {
      const one = requested[i] as Command;
      const judged = command(caller, one);
      if (judged !== one) (changed ??= [...requested])[i] = judged;
    }
    return changed ?? requested;
  }

  function query(caller: Admitted, requested: Query): Query {
    const action = queryActions[requested.kind];
    // A list of executors names no tenant: a caller of one tenant sees those that serve it.
    const tenant = tenantOf(
      caller,
      "tenant" in requested && requested.kind !== "executors" ? requested.tenant : undefined,
    );
    admission.require(caller, action, tenant);
    return tenant === undefined || requested.kind === "stats" ? requested : { ...requested, tenant };
  }

  return {
    request(caller, request): ShardRequest {
      switch (request.kind) {
        case "command": {
          const judged = command(caller, request.command);
          return judged === request.command ? request : { ...request, command: judged };
        }
        case "commands": {
          const judged = commands(caller, request.commands);
          return judged === request.commands ? request : { ...request, commands: judged };
        }
        case "query": {
          const judged = query(caller, request.query);
          return judged === request.query ? request : { ...request, query: judged };
        }
        case "take":
          admission.require(caller, "cluster.admin");
          return request;
      }
    },
    first: (caller, { shard, ...request }) =>
      request.kind === "command"
        ? signalled(caller, shard, [request.command], rules.kinds)
        : request.kind === "commands"
          ? signalled(caller, shard, request.commands, rules.kinds)
          : nothing,
    watch(caller, request) {
      const tenant = tenantOf(caller, request.tenant);
      admission.require(caller, "work.read", tenant);
      return tenant === undefined ? request : { ...request, tenant };
    },
    map: (caller) => admission.require(caller, "cluster.map"),
  };
}

/** A caller of one tenant that names no tenant means its own. */
const tenantOf = (caller: Admitted, given: string | undefined): string | undefined =>
  given ?? (caller && caller.principal.tenant !== allTenants ? caller.principal.tenant : undefined);

/** Commands are copied only if something changes: there may be 100,000 per second. */
function withCaller(requested: Command, executor: string | undefined, tenant: string | undefined): Command {
  const known = requested as { readonly executor?: string; readonly tenant?: string };
  const isSameName = executor === undefined || executor === known.executor;
  if (isSameName && (tenant === undefined || tenant === known.tenant)) return requested;
  const copy: { executor?: string; tenant?: string } & Command = { ...requested };
  if (executor !== undefined) copy.executor = executor;
  if (tenant !== undefined) copy.tenant = tenant;
  return copy;
}

/** The record names the authenticated caller who cancelled a job, whatever the reason text claims. */
function attributed(caller: Admitted, requested: Command): Command {
  if (!caller) return requested;
  // Nodes pass on what their own callers send: they, like operators, may say who that was.
  if (requested.kind === "signal") {
    const isTrusted = caller.principal.roles.has("operator") && requested.signal?.by !== undefined;
    return isTrusted ? requested : { ...requested, signal: { ...requested.signal, by: caller.principal.name } };
  }
  if (requested.kind !== "cancel") return requested;
  const { reason } = requested;
  return { ...requested, reason: `cancelled by ${caller.principal.name}${reason === "" ? "" : `: ${reason}`}` };
}

const submitterOf = (caller: Admitted): Submitter => ({
  name: caller?.principal.name ?? "",
  isOperator: caller?.principal.roles.has("operator") ?? false,
  roles: caller?.principal.roles,
});

/** Throws for work that its door does not accept from this caller, and for labels that the caller may not offer. */
function checkWork(caller: Admitted, requested: Command, { bounds, kinds }: WorkRules): void {
  switch (requested.kind) {
    case "submit": {
      const by = submitterOf(caller);
      refuse(grpcCode.permissionDenied, kinds.refuseJob(requested, by));
      if (!by.isOperator) refuse(grpcCode.invalidArgument, outOfBounds(requested, bounds));
      return;
    }
    case "record-plan": {
      if (requested.plan.kind !== "tasks") return;
      const by = submitterOf(caller);
      for (const set of setsOf(requested.plan)) {
        refuse(grpcCode.permissionDenied, kinds.refusePlanned(set, by));
        if (!by.isOperator) refuse(grpcCode.invalidArgument, outOfTaskBounds(set, bounds));
      }
      return;
    }
    case "reserve":
      if (caller) refuse(grpcCode.permissionDenied, refusedLabel(caller.principal, requested.offers, kinds));
      return;
    default:
  }
}

function refuse(code: number, why: string | undefined): void {
  if (why !== undefined) throw new GrpcError(code, why);
}

const nothing: readonly Lookup[] = [];

/** A signal is judged by the door of the job that it is for, so the job is looked up first. */
function signalled(
  caller: Admitted,
  shard: number,
  requested: readonly Command[],
  kinds: KindTable,
): readonly Lookup[] {
  let firsts: Lookup[] | undefined;
  for (const one of requested) {
    if (one.kind !== "signal") continue;
    const tenant = tenantOf(caller, one.tenant);
    const query = { kind: "job", job: one.job, tasksMax: 0, ...(tenant !== undefined && { tenant }) } as const;
    const { signal, stage } = one;
    (firsts ??= []).push({
      request: { kind: "query", shard, query },
      check: (answer) => {
        const { door, spec, stages } = answer as JobView;
        const to = { stage: stages.find((each) => each.stage === stage)?.name ?? "", spec };
        refuse(grpcCode.permissionDenied, kinds.refuseSignal(door, signal, submitterOf(caller), to));
      },
    });
  }
  return firsts ?? nothing;
}

/** Caches the last caller's own name: an executor sends many requests in a row. */
class OwnNames {
  #caller: Admitted;
  #executor = "";
  #name = "";

  of(caller: Admitted, executor: string): string {
    if (caller === this.#caller && executor === this.#executor) return this.#name;
    this.#name = executorName(caller, executor);
    this.#caller = caller;
    this.#executor = executor;
    return this.#name;
  }
}

/**
 * A claim belongs to its executor, and no caller may use another's name. Two tenants may each have an executor of the
 * same name, so an executor of one tenant is known with the tenant before its name.
 */
export function executorName(caller: Admitted, executor: string): string {
  if (!caller || caller.principal.roles.has("operator")) return executor;
  const { name, tenant } = caller.principal;
  if (executor === name || String(executor).startsWith(`${name}/`))
    return tenant === allTenants ? executor : `${tenant}:${executor}`;
  const why = `${name} may call itself ${name} or ${name}/..., and nothing else`;
  throw new GrpcError(grpcCode.permissionDenied, why);
}

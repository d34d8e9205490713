/**
 * Who may ask what of a shard: every request of the work protocol as an action of the one policy table. Whoever is of
 * one tenant is narrowed to it: what it may not see is answered as if it were not there.
 */
import { buildsDoor, planLabel as buildPlanLabel } from "#doors/build/builds/plan-build.ts";
import { door as buildDoor } from "#doors/build/plan.ts";
import { kinds as shellKinds } from "#doors/shell/plan.ts";
import type { Admission, Admitted } from "#edge/admission.ts";
import type { Action } from "#access/policy.ts";
import { allTenants } from "#access/principal.ts";
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
  const names = new OwnNames();
  const judge = (principal: Admitted, action: Action, given: string | undefined): string | undefined => {
    // Whoever is of one tenant, and does not say which it means, means its own.
    const own = principal && principal.tenant !== allTenants ? principal.tenant : undefined;
    const tenant = given ?? own;
    admission.require(principal, action, tenant);
    return tenant;
  };

  function command(principal: Admitted, asked: Command): Command {
    const { kind } = asked;
    if (isInternal(kind) || !Object.hasOwn(commandActions, kind)) return asked; // for the host to refuse
    const tenant = judge(principal, commandActions[kind as AskedKind], "tenant" in asked ? asked.tenant : undefined);
    if (asked.kind === "submit") {
      ownDoor(principal, asked.door);
      for (const { tasks, plan } of asked.stages) ownKind(principal, tasks?.template.kind ?? plan?.kind);
    }
    if (asked.kind === "reserve") ownOffers(principal, asked.offers);
    if (asked.kind === "record-plan" && asked.plan.kind === "tasks") ownKind(principal, asked.plan.set.template.kind);
    const named = "executor" in asked ? renamed(asked, names.of(principal, asked.executor)) : asked;
    if (tenant === undefined || !narrowed.has(kind)) return named;
    return "tenant" in named && named.tenant === tenant ? named : ({ ...named, tenant } as Command);
  }

  /** The very list that was asked, where nothing in it had to be changed. */
  function commands(principal: Admitted, asked: readonly Command[]): readonly Command[] {
    let changed: Command[] | undefined;
    for (let i = 0; i < asked.length; i += 1) {
      const one = asked[i] as Command;
      const judged = command(principal, one);
      if (judged !== one) (changed ??= [...asked])[i] = judged;
    }
    return changed ?? asked;
  }

  return {
    request(principal, request): ShardRequest {
      switch (request.kind) {
        case "command": {
          const judged = command(principal, request.command);
          return judged === request.command ? request : { ...request, command: judged };
        }
        case "commands": {
          const judged = commands(principal, request.commands);
          return judged === request.commands ? request : { ...request, commands: judged };
        }
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
    first(principal, request) {
      if (!principal || principal.tenant === allTenants) return nothing;
      const { shard } = request;
      const { tenant } = principal;
      const asked =
        request.kind === "command" ? [request.command] : request.kind === "commands" ? request.commands : [];
      const queries = asked.flatMap((one): Query[] => {
        if (one.kind === "invalidate") return [{ kind: "task", task: one.task, tenant }];
        return one.kind === "leave" ? [{ kind: "job", job: one.job, tenant, tasksMax: 0 }] : [];
      });
      if (request.kind === "query" && request.query.kind === "plan-inputs")
        queries.push({ kind: "task", task: request.query.task, tenant });
      return queries.map((query) => ({ kind: "query", shard, query }));
    },
    watch(principal, request) {
      const tenant = judge(principal, "work.read", request.tenant);
      return tenant === undefined ? request : { ...request, tenant };
    },
  };
}

const nothing: readonly ShardRequest[] = [];

/** Commands are copied only where there is something to change: there may be 100,000 a second. */
const renamed = (command: Extract<Command, { readonly executor: string }>, executor: string): Command =>
  executor === command.executor ? command : { ...command, executor };

/** Commands whose tenant may be left out, and then means all of them. */
const narrowed: ReadonlySet<CommandKind> = new Set(["cancel", "signal", "reserve"]);

/** The own name of whoever spoke last: an executor says many things in a row. */
class OwnNames {
  #principal: Admitted;
  #executor = "";
  #name = "";

  of(principal: Admitted, executor: string): string {
    if (principal === this.#principal && executor === this.#executor) return this.#name;
    this.#name = ownName(principal, executor);
    this.#principal = principal;
    this.#executor = executor;
    return this.#name;
  }
}

/**
 * A claim is its executor's own: nobody speaks in another's name. Two tenants may each have one of the same name, so
 * whoever is of one tenant is known with the tenant before its name, which no tenant's name can be mistaken for.
 */
function ownName(principal: Admitted, executor: string): string {
  if (!principal || principal.roles.has("operator")) return executor;
  const { name, tenant } = principal;
  if (executor === name || String(executor).startsWith(`${name}/`))
    return tenant === allTenants ? executor : `${tenant}:${executor}`;
  throw denied(`${name} may call itself ${name} or ${name}/..., and not otherwise`);
}

const doorsOfTheirOwn: ReadonlySet<string> = new Set([buildDoor, buildsDoor]);

/** Their jobs say who asked and what is published: that is the door's word, and nobody else's. */
function ownDoor(principal: Admitted, door: string): void {
  if (principal?.roles.has("operator") || !doorsOfTheirOwn.has(door)) return;
  throw denied(`jobs of the door ${door} are made by its own calls, such as Execute and SubmitBuild`);
}

/**
 * An executor's pools are its principal's, whatever it asks for. And who plans a build says what its actions are, and
 * whose: that is the door's word as well.
 */
function ownOffers(principal: Admitted, offers: readonly string[]): void {
  if (principal?.roles.has("operator")) return;
  if (offers.includes(buildPlanLabel))
    throw denied(`stages of builds are planned by nodes: ${buildPlanLabel} is not for others to offer`);
  const pools = principal?.pools;
  const other = pools && offers.find((label) => label.startsWith("pool=") && !pools.includes(label.slice(5)));
  if (other !== undefined)
    throw denied(`${principal?.name} was not given ${other}: its pools are ${pools?.join(", ")}`);
}

const asTheNode: ReadonlySet<string> = new Set(Object.values(shellKinds));

/** These run as the node's own user, who can read what all tenants have. */
function ownKind(principal: Admitted, kind: string | undefined): void {
  if (principal?.roles.has("operator") || kind === undefined || !asTheNode.has(kind)) return;
  throw denied(`${kind} runs as the node itself: that is for operators; others run actions, in a sandbox`);
}

const denied = (message: string): GrpcError => new GrpcError(grpcCode.permissionDenied, message);

import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { planKind, planLabel, stepKind } from "#doors/build/builds/plan-build.ts";
import { actionKind, templateOf } from "#doors/build/plan.ts";
import { kinds as shellKinds, planLabel as shellPlanLabel, taskLabel as shellTaskLabel } from "#doors/shell/plan.ts";
import { Admission } from "#edge/port/admission.ts";
import type { Caller } from "#access/caller.ts";
import { allTenants, principal, type Grant } from "#access/principal.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { Command, CommandKind } from "#kernel/model/command.ts";
import type { PlanSpec, StageSpec, TaskSet, TaskTemplate } from "#kernel/model/model.ts";
import type { JobView, Query } from "#kernel/read/query.ts";
import type { ShardRequest } from "#shard/transport/protocol.ts";
import { kindTable } from "#app/door-kinds.ts";
import { WorkConfig } from "#app/config/work-config.ts";
import { commandActions, queryActions, workPolicy } from "./work-policy.ts";

const admission = new Admission({
  authenticator: undefined as never,
  clock: new ManualClock(),
  refused: () => {},
});
const policy = workPolicy(admission, { bounds: WorkConfig.parse({}), kinds: kindTable });

const callerWith = (grant: Grant): Caller => ({
  principal: principal(grant, "token"),
  address: "127.0.0.1",
  untilMs: Infinity,
  isTls: false,
});
const operator = callerWith({ name: "ops", tenant: allTenants, roles: ["operator"] });
const worker = (tenant: string): Caller => callerWith({ name: "runner", tenant, roles: ["executor"] });

const renew = (executor: string): Command => ({ kind: "renew", executor, claims: [] });
const reserve = (tenant?: string): Command => ({
  kind: "reserve",
  executor: "runner",
  offers: [],
  prefer: [],
  count: 1,
  start: true,
  nonce: "n",
  ...(tenant === undefined ? {} : { tenant }),
});
const one = (command: Command): ShardRequest => ({ kind: "command", shard: 0, command });
const many = (...commands: readonly Command[]): ShardRequest => ({ kind: "commands", shard: 0, commands });

const isInvalid = (error: unknown): boolean => error instanceof GrpcError && error.code === grpcCode.invalidArgument;
const isDenied = (error: unknown): boolean => error instanceof GrpcError && error.code === grpcCode.permissionDenied;

describe("what a caller may ask of a shard", () => {
  test("is handed on as it is where nothing has to be changed", () => {
    for (const request of [one(renew("anybody")), many(renew("a"), reserve(), renew("b"))])
      equal(policy.request(operator, request), request);
  });

  test("is restricted to the caller's tenant and name, whichever caller came before", () => {
    const asked = many(renew("runner"), renew("runner/2"), reserve());
    for (const tenant of ["acme", "other", "acme"])
      deepEqual(
        policy.request(worker(tenant), asked),
        many(renew(`${tenant}:runner`), renew(`${tenant}:runner/2`), {
          ...reserve(tenant),
          executor: `${tenant}:runner`,
        } as Command),
      );
    deepEqual(asked, many(renew("runner"), renew("runner/2"), reserve()));
  });

  test("is refused in another's name and in another tenant, also right after it was granted to someone", () => {
    ok(policy.request(operator, one(renew("stranger"))));
    throws(() => policy.request(worker("acme"), one(renew("stranger"))), isDenied);
    throws(() => policy.request(worker("acme"), many(renew("runner"), renew("runner-2"))), isDenied);
    throws(() => policy.request(worker("acme"), one(reserve("other"))), isDenied);
  });

  const offering = (...offers: readonly string[]) => one({ ...reserve(), offers } as Command);
  const granted = (grant: Pick<Grant, "pools" | "labels">) =>
    callerWith({ name: "runner", tenant: "acme", roles: ["executor"], ...grant });

  test("is work of the pools that it was given, or of the default one", () => {
    const given = granted({ pools: ["gpu"] });
    ok(policy.request(given, offering("door=build", "pool=gpu")));
    ok(policy.request(given, offering("door=build")));
    throws(() => policy.request(given, offering("pool=gpu", "pool=release")), isDenied);
    throws(() => policy.request(given, offering("pool=default")), isDenied);
    ok(policy.request(granted({}), offering("pool=default")));
    throws(() => policy.request(granted({}), offering("pool=release")), isDenied);
  });

  test("is work for labels that others rely on only where they were granted", () => {
    for (const label of ["sandbox=bubblewrap", "node=node-1", "tenant=acme"]) {
      throws(() => policy.request(granted({}), offering(label)), isDenied, label);
      ok(policy.request(granted({ labels: [label] }), offering(label)), label);
      ok(policy.request(operator, offering(label)), label);
    }
    ok(policy.request(granted({}), offering("arch=arm64", "door=build", "lang=python", "os=linux")));
  });

  test("is work for the labels that were granted, and for no others", () => {
    const given = granted({ labels: ["door=build", "os=*", "gpu=a*"] });
    ok(policy.request(given, offering("door=build", "gpu=a100", "os=linux", "os=")));
    for (const label of ["gpu=b200", "os", "osx=linux", "door=buildx", "lang=python", "pool=default"])
      throws(() => policy.request(given, offering("door=build", label)), isDenied, label);
  });

  test("never makes it what only nodes are, whatever was granted", () => {
    const given = granted({ labels: ["plan=*", "door=*"] });
    for (const label of [planLabel, shellPlanLabel, shellTaskLabel]) {
      throws(() => policy.request(given, offering(label)), isDenied, label);
      ok(policy.request(operator, offering(label)));
    }
    ok(policy.request(given, offering("plan=own", "door=build")));
  });

  test("E4: does not make it a planner of builds, who says what is published and in whose name", () => {
    const asked = { ...reserve(), offers: ["door=build", planLabel] } as Command;
    ok(policy.request(operator, one(asked)));
    throws(() => policy.request(worker("acme"), one(asked)), isDenied);
    throws(() => policy.request(worker(allTenants), many(renew("runner"), asked)), isDenied);
  });
});

const stage = { name: "only", needs: [], after: "success", failFast: true, mayFail: false, parallelMax: 0 } as const;
const tasksOf = (kind: string, more: Partial<TaskTemplate> = {}): TaskSet => ({
  template: { ...templateOf({ requires: [], queueMs: 60_000, timeoutMs: 60_000 }), ...more, kind },
  tasks: [{ key: "1", spec: JSON.stringify({ action: "", merge: "", principal: "somebody else" }) }],
});
const planOf = (kind: string): PlanSpec => ({ kind, requires: [], leaseMs: 1_000, attemptsMax: 1, deadlineMs: 60_000 });
const submit = (door: string, work: Pick<StageSpec, "tasks"> | Pick<StageSpec, "plan">, more = {}): Command => ({
  kind: "submit",
  tenant: "acme",
  door,
  name: "n",
  payloadHash: "",
  priority: 0,
  spec: "",
  stages: [{ ...stage, ...work }],
  deadlineMs: 60_000,
  ...more,
});
const recorded = (kind: string, more: Partial<TaskTemplate> = {}): Command => ({
  kind: "record-plan",
  executor: "runner",
  task: 1,
  token: 1,
  plan: { kind: "tasks", set: tasksOf(kind, more) },
});

const buildWork = [actionKind, stepKind, planKind];
const shellWork = Object.values(shellKinds);
const member = callerWith({ name: "anna", tenant: "acme", roles: ["member"] });
const both = callerWith({ name: "runner", tenant: "acme", roles: ["member", "executor"] });

describe("a kind of work belongs to its door", () => {
  const refusedEach = (who: Caller, commands: readonly Command[]): void => {
    for (const command of commands) {
      throws(() => policy.request(who, one(command)), isDenied, `${who.principal.name}: ${JSON.stringify(command)}`);
      throws(() => policy.request(who, many(renew(who.principal.name), command)), isDenied);
    }
  };

  test("no caller may submit work of builds, under any door's name", () => {
    for (const who of [member, operator])
      for (const door of ["own", "build", "builds", "shell"])
        refusedEach(
          who,
          buildWork.flatMap((kind) => [submit(door, { tasks: tasksOf(kind) }), submit(door, { plan: planOf(kind) })]),
        );
  });

  test("work that runs as the node is submitted by operators, under its own door's name", () => {
    for (const kind of shellWork) {
      refusedEach(member, [submit("shell", { tasks: tasksOf(kind) }), submit("own", { plan: planOf(kind) })]);
      refusedEach(operator, [submit("own", { tasks: tasksOf(kind) })]);
      ok(policy.request(operator, one(submit("shell", { tasks: tasksOf(kind) }))));
    }
  });

  test("no caller may submit to a door of builds, or joins one of its jobs", () => {
    for (const door of ["build", "builds"])
      for (const who of [member, operator])
        refusedEach(who, [
          submit(door, { tasks: tasksOf("python.call") }),
          submit(door, {}, { stages: [], joinOnly: true, mergeKey: "m", deadlineMs: 0 }),
        ]);
  });

  test("a recorded plan has no work that its planner could not submit", () => {
    refusedEach(
      both,
      [...buildWork, ...shellWork].map((kind) => recorded(kind)),
    );
    refusedEach(callerWith({ name: "runner", tenant: "*", roles: ["operator"] }), [recorded(actionKind)]);
    ok(policy.request(both, one(recorded("python.call"))));
  });

  test("kinds of one's own have a family that is no door's", () => {
    for (const kind of ["python.call", "my-team.index.build", "a.B"])
      ok(policy.request(member, one(submit("own", { tasks: tasksOf(kind) }))), kind);
    for (const kind of ["build.other", "builds.x", "shell.x", "ci.step", "batch.map", "deploy.x", "millrace.x", "bare"])
      refusedEach(both, [submit("own", { tasks: tasksOf(kind) }), recorded(kind)]);
    for (const kind of ["Build.action", "build.action ", ".call", "python.", "a..b", "a\u0000.b", ""])
      refusedEach(both, [submit("own", { tasks: tasksOf(kind) }), recorded(kind)]);
    for (const door of ["ci", "batch", "deploy", "console", "millrace"])
      refusedEach(member, [submit(door, { tasks: tasksOf("python.call") })]);
  });

  test("every kind that a node runs or plans is in the table", () => {
    for (const kind of [...buildWork, ...shellWork]) ok(kindTable.doorOf(kind), kind);
  });

  test("times and priorities are bounded by the node for everybody but operators", () => {
    const bounded = workPolicy(admission, {
      bounds: { deadlineMax: 1_000, attemptMax: 100, priorityMax: 5 },
      kinds: kindTable,
    });
    const fitting = tasksOf("python.call", { queueMs: 1_000, attemptMs: 100 });
    const fits = submit("own", { tasks: fitting }, { deadlineMs: 1_000, priority: 5 });
    const outside = [
      { ...fits, priority: 6 },
      { ...fits, priority: -6 },
      { ...fits, deadlineMs: 1_001 },
      submit("own", { tasks: tasksOf("python.call", { queueMs: 1_000, attemptMs: 101 }) }, { deadlineMs: 1_000 }),
      submit("own", { tasks: tasksOf("python.call", { queueMs: 1_001, attemptMs: 100 }) }, { deadlineMs: 1_000 }),
      submit("own", { plan: planOf("python.plan") }, { deadlineMs: 1_000 }),
      recorded("python.call", { queueMs: 1, attemptMs: 101 }),
    ] as Command[];
    ok(bounded.request(both, one(fits)));
    for (const command of outside) {
      throws(() => bounded.request(both, one(command)), isInvalid, JSON.stringify(command));
      if (command.kind === "submit") ok(bounded.request(operator, one(command)));
    }
  });

  test("a signal is looked at by the door whose job it is for", () => {
    const signal = (name: string): Command => ({
      kind: "signal",
      job: 7,
      stage: 0,
      signal: { id: "1", name, payload: "" },
    });
    const check = (who: Caller, command: Command, door: string): void => {
      const [first] = policy.first(who, one(command));
      ok(first);
      deepEqual(first.request, {
        kind: "query",
        shard: 0,
        query: {
          kind: "job",
          job: 7,
          tasksMax: 0,
          ...(who.principal.tenant !== allTenants && { tenant: who.principal.tenant }),
        },
      });
      first.check({ door, spec: "", stages: [] as JobView["stages"] } as JobView);
    };
    for (const who of [member, operator]) {
      check(who, signal("approve"), "shell");
      check(who, signal("whatever"), "own");
      for (const [name, door] of [
        ["jump", "shell"],
        ["approve", "build"],
        ["approve", "builds"],
      ] as const)
        throws(() => check(who, signal(name), door), isDenied);
    }
    deepEqual(policy.first(member, one(renew("anna"))), []);
  });
});

describe("a caller of one tenant", () => {
  const request = { executor: "runner", task: 1, token: 1 };
  const named: readonly Command[] = [
    { kind: "leave", job: 1, subscriber: "s" },
    { kind: "cancel", job: 1, reason: "" },
    { kind: "signal", job: 1, stage: 0, signal: { id: "1", name: "n", payload: "" } },
    reserve(),
    { kind: "start", ...request },
    { kind: "report", ...request, steps: [] },
    { kind: "commit", ...request, result: { payload: "", digests: [] }, evidence: { digests: [], pinnedForMs: 0 } },
    { kind: "record-plan", ...request, plan: { kind: "skip", reason: "" } },
    { kind: "fail", ...request, reason: "preempted", message: "" },
    { kind: "release", ...request },
    {
      kind: "checkpoint",
      ...request,
      checkpoint: { payload: "", digests: [] },
      evidence: { digests: [], pinnedForMs: 0 },
    },
    { kind: "invalidate", task: 1, generation: 1, reason: "" },
  ];
  // The other commands name neither a job nor a task, or are for operators.
  const rest: readonly CommandKind[] = ["submit", "renew", "drain", "resume", "set-tenant", "lend-quota"];

  test("signs its signals; only an operator, as which nodes call, may say who sent one", () => {
    const signal = { id: "1", name: "n", payload: "", by: "somebody else" };
    const asked: Command = { kind: "signal", job: 1, stage: 0, signal };
    const signedAs = (who: Parameters<typeof policy.request>[0]): unknown => {
      const judged = policy.request(who, one(asked));
      return judged.kind === "command" && judged.command.kind === "signal" ? judged.command.signal.by : undefined;
    };
    equal(signedAs(both), both?.principal.name);
  });

  test("is narrowed to it in every command that names a job or a task, whatever tenant the request names", () => {
    deepEqual([...named.map(({ kind }) => kind), ...rest].toSorted(), Object.keys(commandActions).toSorted());
    for (const command of named) {
      if (command.kind === "cancel" || command.kind === "signal") continue; // say who besides: see below
      const judged = policy.request(both, one(command));
      deepEqual(
        judged,
        one({ ...command, ...("executor" in command && { executor: "acme:runner" }), tenant: "acme" } as Command),
      );
      throws(() => policy.request(both, one({ ...command, tenant: "other" } as Command)), isDenied, command.kind);
      ok(policy.request(operator, one(command)));
    }
  });

  test("is named by who was authenticated in the record of a cancellation, whatever the reason claims", () => {
    const cancel = (reason: string, more = {}): Command => ({ kind: "cancel", job: 1, reason, ...more });
    const forged = policy.request(both, one(cancel("cancelled by ops")));
    deepEqual(forged, one(cancel("cancelled by runner: cancelled by ops", { tenant: "acme" })));
    deepEqual(policy.request(operator, one(cancel(""))), one(cancel("cancelled by ops")));
    throws(() => policy.request(both, one(cancel("", { tenant: "other" }))), isDenied);
  });

  test("is narrowed to it in every query of work", () => {
    const all = callerWith({ name: "v", tenant: "acme", roles: ["member", "executor", "viewer"] });
    const queries: readonly Query[] = [
      { kind: "job", job: 1 },
      { kind: "jobs", limit: 1 },
      { kind: "count" },
      { kind: "task", task: 1 },
      { kind: "why", job: 1 },
      { kind: "plan-inputs", task: 1, token: 1, limit: 1 },
      { kind: "executors" },
    ];
    deepEqual([...queries.map(({ kind }) => kind), "stats"].toSorted(), Object.keys(queryActions).toSorted());
    for (const query of queries) {
      const asked = { kind: "query", shard: 0, query } as const;
      deepEqual(policy.request(all, asked), { ...asked, query: { ...query, tenant: "acme" } });
      const foreign = { ...asked, query: { ...query, tenant: "other" } as Query };
      if (query.kind === "executors") deepEqual(policy.request(all, foreign), policy.request(all, asked));
      else throws(() => policy.request(all, foreign), isDenied, query.kind);
    }
  });
});

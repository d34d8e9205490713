import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/manual-clock.ts";
import { planLabel } from "#doors/build/builds/plan-build.ts";
import { Admission } from "#edge/admission.ts";
import { allTenants, principal, type Principal } from "#edge/principal.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import type { Command } from "#kernel/command.ts";
import type { ShardRequest } from "#shard/protocol.ts";
import { workPolicy } from "./work-policy.ts";

const policy = workPolicy(
  new Admission({ authenticator: undefined as never, clock: new ManualClock(), refused: () => {} }),
);

const operator = principal({ name: "ops", tenant: allTenants, roles: ["operator"] }, "token");
const worker = (tenant: string): Principal => principal({ name: "runner", tenant, roles: ["executor"] }, "token");

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

const isDenied = (error: unknown): boolean => error instanceof GrpcError && error.code === grpcCode.permissionDenied;

describe("what a caller may ask of a shard", () => {
  test("is handed on as it is where nothing has to be changed", () => {
    for (const request of [one(renew("anybody")), many(renew("a"), reserve(), renew("b"))])
      equal(policy.request(operator, request), request);
  });

  test("is narrowed to the caller's tenant and name, whoever spoke before", () => {
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

  test("is work of the pools that it was given, where it was given some", () => {
    const grant = { name: "runner", tenant: "acme", roles: ["executor"], pools: ["gpu"] } as const;
    const offering = (...offers: readonly string[]) => one({ ...reserve(), offers } as Command);
    const given = principal(grant, "token");
    ok(policy.request(given, offering("door=build", "pool=gpu")));
    ok(policy.request(given, offering("door=build")));
    throws(() => policy.request(given, offering("pool=gpu", "pool=release")), isDenied);
    ok(policy.request(worker("acme"), offering("pool=release")), "given none, it is of any");
  });

  test("E4: does not make it a planner of builds, who says what is published and in whose name", () => {
    const asked = { ...reserve(), offers: ["door=build", planLabel] } as Command;
    ok(policy.request(operator, one(asked)));
    throws(() => policy.request(worker("acme"), one(asked)), isDenied);
    throws(() => policy.request(worker(allTenants), many(renew("runner"), asked)), isDenied);
  });
});

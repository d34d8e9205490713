import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { allTenants, grantProblem, principal, type Role } from "./principal.ts";

describe("a principal", () => {
  test("has exactly what it was granted, and how it was proven", () => {
    const who = principal({ name: "ci", tenant: "acme", roles: ["member", "viewer"] }, "token");
    deepEqual([who.name, who.tenant, [...who.roles], who.proof], ["ci", "acme", ["member", "viewer"], "token"]);
  });

  const cases: readonly (readonly [tenant: string, roles: readonly Role[], problem: string | undefined])[] = [
    ["acme", ["member"], undefined],
    ["acme", [], undefined],
    ["acme", ["executor"], undefined],
    [allTenants, ["operator"], undefined],
    [allTenants, ["operator", "member"], undefined],
    [allTenants, ["executor"], undefined],
    [allTenants, ["executor", "cache-writer", "action-cache-writer"], undefined],
    ["acme", ["operator"], 'an operator is one of all tenants: write "*"'],
    [allTenants, [], "only operators and executors can be of all tenants"],
    [allTenants, ["member"], "only operators and executors can be of all tenants"],
    [allTenants, ["cache-reader"], "only operators and executors can be of all tenants"],
    [allTenants, ["executor", "member"], "a member belongs to one tenant"],
    [allTenants, ["executor", "viewer"], "a viewer belongs to one tenant"],
    ["", ["member"], "a tenant's name has letters, digits, dots and dashes only"],
    ["**", ["executor"], "a tenant's name has letters, digits, dots and dashes only"],
    ["a b", [], "a tenant's name has letters, digits, dots and dashes only"],
    ["a/b", [], "a tenant's name has letters, digits, dots and dashes only"],
    ["a\n", [], "a tenant's name has letters, digits, dots and dashes only"],
  ];
  for (const [tenant, roles, problem] of cases)
    test(`${roles.join(" + ") || "no role"} of ${JSON.stringify(tenant)}: ${problem ?? "granted"}`, () => {
      equal(grantProblem({ tenant, roles }), problem);
      if (problem !== undefined) throws(() => principal({ name: "x", tenant, roles }, "token"));
    });
});

import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { claimAt, grantOf, type ClaimRules } from "./claims.ts";

const rules: ClaimRules = {
  name: { claim: "sub" },
  tenant: { claim: "org" },
  roles: { always: [], claim: "groups", map: { builders: ["member", "cache-writer"], watchers: ["viewer"] } },
};
const claims = { sub: "ada", org: "acme", groups: ["builders"] };

describe("claims", () => {
  test("are found by their whole name first, then along the dots", () => {
    equal(claimAt({ "https://x.example/org": "a" }, "https://x.example/org"), "a");
    equal(claimAt({ realm: { access: "b" } }, "realm.access"), "b");
    equal(claimAt({ "realm.access": "whole", realm: { access: "b" } }, "realm.access"), "whole");
    equal(claimAt({ realm: "text" }, "realm.length"), undefined);
  });

  test("are never inherited properties", () => {
    for (const name of ["constructor", "toString", "__proto__", "a.constructor.name"])
      equal(claimAt({ a: {} }, name), undefined, name);
    const inherited = { ...claims, groups: ["constructor", "__proto__", "toString"] };
    equal(grantOf(inherited, rules), undefined);
    equal(grantOf({ ...claims, org: "constructor" }, { ...rules, tenant: { claim: "org", map: {} } }), undefined);
  });

  test("give a name, a tenant and roles", () => {
    deepEqual(grantOf(claims, rules), { name: "ada", tenant: "acme", roles: ["member", "cache-writer"] });
    deepEqual(grantOf(claims, { ...rules, pools: ["gpu"] })?.pools, ["gpu"], "and the issuer's pools");
    deepEqual(grantOf(claims, { ...rules, labels: ["os=*"] })?.labels, ["os=*"], "and the issuer's labels");
    deepEqual(grantOf({ ...claims, groups: "watchers builders other" }, rules)?.roles, [
      "viewer",
      "member",
      "cache-writer",
    ]);
  });

  test("give nothing when one of them is missing or of another type", () => {
    for (const bad of [
      { sub: undefined },
      { sub: 7 },
      { sub: "" },
      { sub: "a\u001b[2J" },
      { sub: "a\u202eb" },
      { org: undefined },
      { org: ["acme"] },
      { org: "*" },
      { org: "a/b" },
      { groups: [] },
      { groups: undefined },
      { groups: { builders: true } },
      { groups: [["builders"]] },
    ])
      equal(grantOf({ ...claims, ...bad }, rules), undefined, JSON.stringify(bad));
  });

  test("map tenants by a table, and then only by it", () => {
    const mapped: ClaimRules = { ...rules, tenant: { claim: "org", map: { "acme-inc": "acme" } } };
    equal(grantOf({ ...claims, org: "acme-inc" }, mapped)?.tenant, "acme");
    equal(grantOf(claims, mapped), undefined);
  });

  test("make an operator of all tenants, if the configuration says so", () => {
    const map: ClaimRules["roles"]["map"] = { builders: ["member"], ops: ["operator"] };
    const withOps: ClaimRules = { ...rules, roles: { ...rules.roles, map } };
    deepEqual(grantOf({ ...claims, groups: ["builders", "ops"] }, withOps), {
      name: "ada",
      tenant: "*",
      roles: ["member", "operator"],
    });
    equal(grantOf({ sub: "ada", groups: ["ops"] }, withOps)?.tenant, "*");
    equal(grantOf({ ...claims, groups: ["operator"] }, withOps), undefined);
  });

  test("cannot grant access to all tenants", () => {
    const workers: ClaimRules = { ...rules, roles: { always: ["executor"], map: {} } };
    equal(grantOf(claims, workers)?.tenant, "acme");
    equal(grantOf({ ...claims, org: "*" }, workers), undefined);
  });

  test("cannot combine into a grant that is not allowed", () => {
    const shared: ClaimRules = {
      ...rules,
      tenant: { fixed: "*" },
      roles: { always: [], claim: "groups", map: { workers: ["executor"], builders: ["member"] } },
    };
    equal(grantOf({ ...claims, groups: ["workers"] }, shared)?.tenant, "*");
    equal(grantOf({ ...claims, groups: ["workers", "builders"] }, shared), undefined);
    equal(grantOf({ ...claims, groups: ["builders"] }, shared), undefined);
  });
});

import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { actions, authorize, type Action } from "./policy.ts";
import { allTenants, anonymousGrant, principal, roles, type Role } from "./principal.ts";

const as = (role: Role, tenant = role === "operator" ? allTenants : "acme") =>
  principal({ name: `some-${role}`, tenant, roles: [role] }, "token");

// The whole matrix, for a caller's own tenant. A change of the policy must change this too, so that its effect is seen.
const matrix = `
                     operator member builder executor cache-reader cache-writer action-cache-writer viewer agent nobody
  health             yes      yes    yes     yes      yes          yes          yes                 yes    yes   yes
  service.describe   yes      yes    yes     yes      yes          yes          yes                 yes    yes   -
  cluster.map        yes      yes    -       yes      -            -            -                   yes    -     -
  cluster.read       yes      -      -       -        -            -            -                   yes    -     -
  cluster.admin      yes      -      -       -        -            -            -                   -      -     -
  metrics.read       yes      -      -       -        -            -            -                   yes    -     -
  login.link         yes      yes    -       -        -            -            -                   yes    -     -
  work.submit        yes      yes    -       -        -            -            -                   -      -     -
  work.read          yes      yes    -       -        -            -            -                   yes    -     -
  work.signal        yes      yes    -       -        -            -            -                   -      -     -
  work.cancel        yes      yes    -       -        -            -            -                   -      -     -
  work.execute       yes      -      -       yes      -            -            -                   -      -     -
  work.admin         yes      -      -       -        -            -            -                   -      -     -
  secret.write       yes      yes    -       -        -            -            -                   -      -     -
  secret.list        yes      yes    -       -        -            -            -                   yes    -     -
  secret.rotate      yes      -      -       -        -            -            -                   -      -     -
  schedule.write     yes      yes    -       -        -            -            -                   -      -     -
  schedule.read      yes      yes    -       -        -            -            -                   yes    -     -
  audit.read         yes      -      -       -        -            -            -                   yes    -     -
  build.execute      yes      yes    yes     -        -            -            -                   -      -     -
  deploy.attach      yes      -      -       -        -            -            -                   -      yes   -
  deploy.read        yes      yes    -       -        -            -            -                   yes    -     -
  deploy.release     yes      -      -       -        -            -            -                   -      -     -
  ci.read            yes      yes    -       -        -            -            -                   yes    -     -
  ci.run             yes      yes    -       -        -            -            -                   -      -     -
  ci.admin           yes      -      -       -        -            -            -                   -      -     -
  sources.push       yes      yes    -       -        -            -            -                   -      -     -
  cache.read         yes      yes    yes     yes      yes          yes          yes                 -      -     -
  cache.write        yes      yes    yes     yes      -            yes          yes                 -      -     -
  action-cache.read  yes      yes    yes     yes      yes          yes          yes                 -      -     -
  action-cache.write yes      -      -       -        -            -            yes                 -      -     -
`;

const rows = matrix
  .trim()
  .split("\n")
  .map((line) => line.trim().split(/\s+/));
const [columns = [], ...body] = rows;

describe("the policy", () => {
  test("is the matrix: every action, every role, nothing besides", () => {
    deepEqual(columns, [...roles, "nobody"]);
    deepEqual(
      body.map(([action]) => action),
      [...actions],
    );
    for (const [action, ...cells] of body)
      for (const [index, cell] of cells.entries()) {
        const role = columns[index] as Role | "nobody";
        const who = role === "nobody" ? undefined : as(role);
        const outcome = authorize(who, action as Action, "acme");
        equal(outcome.ok ? "yes" : "-", cell, `${role} ${action}`);
      }
  });

  test("lets everyone but operators act in their own tenant only", () => {
    const clusterWide = actions.filter(
      (action) =>
        !/^(work|build|deploy|ci|sources|cache|action-cache|audit|schedule|secret\.(write|list))\b/.test(action),
    );
    for (const role of roles)
      for (const action of actions) {
        const own = authorize(as(role), action, "acme");
        for (const elsewhere of [authorize(as(role), action, "globex"), authorize(as(role), action)])
          equal(elsewhere.ok, own.ok && (role === "operator" || clusterWide.includes(action)), `${role} ${action}`);
      }
  });

  test("an executor of all tenants may execute for each of them, and submit for none", () => {
    const shared = principal({ name: "fleet", tenant: allTenants, roles: ["executor"] }, "certificate");
    ok(authorize(shared, "work.execute").ok);
    ok(authorize(shared, "work.execute", "acme").ok);
    ok(!authorize(shared, "work.submit", "acme").ok);
  });

  test("a principal without roles gets only what everyone gets", () => {
    const bare = principal({ name: "bare", tenant: "acme", roles: [] }, "jwt");
    deepEqual(
      actions.filter((action) => authorize(bare, action, "acme").ok),
      ["health", "service.describe"],
    );
  });

  test("anonymous callers of a node with default settings may use the cache and run actions, and nothing else", () => {
    const { tenant, roles: granted } = anonymousGrant;
    const anybody = principal({ name: "anonymous", tenant, roles: granted }, "anonymous");
    const may = (elsewhere?: string) => actions.filter((action) => authorize(anybody, action, elsewhere).ok);
    const everyTenant = ["health", "service.describe"];
    const own = ["build.execute", "cache.read", "cache.write", "action-cache.read", "action-cache.write"];
    deepEqual(may("default"), [...everyTenant, ...own]);
    deepEqual(may("another"), everyTenant);
    deepEqual(may(), everyTenant);
    const refused = authorize(anybody, "metrics.read");
    ok(!refused.ok);
    match(refused.refusal.message, /call with a token/);
  });

  test("a refusal names what is needed", () => {
    const submit = authorize(as("viewer"), "work.submit", "acme");
    ok(!submit.ok && submit.refusal.kind === "forbidden");
    deepEqual([submit.refusal.reason, submit.refusal.needs], ["role-missing", ["operator", "member"]]);
    equal(
      submit.refusal.message,
      "work.submit needs one of the roles operator, member; some-viewer of acme has viewer",
    );
    const foreign = authorize(as("member"), "work.read", "globex");
    ok(!foreign.ok && foreign.refusal.kind === "forbidden");
    deepEqual([foreign.refusal.reason, foreign.refusal.needs], ["tenant-foreign", ["operator"]]);
    ok(!foreign.refusal.message.includes("globex"), "another tenant's name is not confirmed");
    const all = authorize(as("member"), "work.read");
    ok(!all.ok);
    match(all.refusal.message, /name one tenant/);
    const nobody = authorize(undefined, "work.read", "acme");
    ok(!nobody.ok);
    equal(nobody.refusal.reason, "credentials-missing");
  });
});

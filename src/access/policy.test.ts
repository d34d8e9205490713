import { deepEqual, equal, match, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { actions, authorize, policy } from "./policy.ts";
import { allTenants, anonymousGrant, principal, roles, type Role } from "./principal.ts";

const as = (role: Role, tenant = role === "operator" ? allTenants : "acme") =>
  principal({ name: `some-${role}`, tenant, roles: [role] }, "token");

// Who may do what in its own tenant. A change of the policy must change this too, so that its effect is seen.
const matrix = `
  health             everyone
  service.describe   known
  cluster.map        operator member executor viewer runner
  cluster.read       operator viewer
  cluster.admin      operator
  metrics.read       operator viewer
  issuer.read        everyone
  issuer.rotate      operator
  login.link         operator member viewer
  work.submit        operator member
  work.read          operator member viewer
  work.signal        operator member
  work.cancel        operator member
  work.execute       operator executor runner
  work.admin         operator
  task.artifacts     task
  task.report        task
  task.checkpoint    task
  worker.register    everyone
  worker.self        executor
  worker.admin       operator
  worker.read        operator viewer
  pool.read          operator member viewer
  secret.write       operator member
  secret.list        operator member viewer
  secret.rotate      operator
  schedule.write     operator member
  schedule.read      operator member viewer
  effect.write       task
  effect.read        operator member viewer task
  effect.decide      operator member
  webhook.write      operator member
  webhook.read       operator member viewer
  audit.read         operator viewer
  build.execute      operator member builder
  deploy.attach      operator agent
  deploy.read        operator member viewer releaser approver
  deploy.release     operator releaser
  deploy.keys        operator
  deploy.approve     operator approver
  ci.read            operator member viewer
  ci.run             operator member
  ci.approve         operator member approver
  ci.admin           operator
  sources.push       operator member
  cache.read         operator member builder executor cache-reader cache-writer action-cache-writer runner
  cache.write        operator member builder executor cache-writer action-cache-writer runner
  action-cache.read  operator member builder executor cache-reader cache-writer action-cache-writer runner
  action-cache.write operator action-cache-writer
`;

const rows = matrix
  .trim()
  .split("\n")
  .map((line) => line.trim().split(/\s+/));

describe("the policy", () => {
  test("is the matrix: every action, every role, nothing besides", () => {
    const found = actions.map((action) => {
      const may = roles.filter((role) => authorize(as(role), action, "acme").ok);
      if (authorize(undefined, action, "acme").ok) return [action, "everyone"];
      return may.length === roles.length ? [action, "known"] : [action, ...may];
    });
    deepEqual(found, rows);
  });

  test("lets everyone but operators act in their own tenant only", () => {
    const clusterWide = actions.filter((action) => policy[action].of === "cluster");
    const ofNoTenant = /^(health|service|cluster|metrics|issuer|login|deploy\.keys|secret\.rotate|worker\.register)/;
    ok(clusterWide.every((action) => ofNoTenant.test(action)));
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
      ["health", "service.describe", "issuer.read", "worker.register"],
    );
  });

  test("anonymous callers of a node with default settings may use the cache and run actions, and nothing else", () => {
    const { tenant, roles: granted } = anonymousGrant;
    const anybody = principal({ name: "anonymous", tenant, roles: granted }, "anonymous");
    const may = (elsewhere?: string) => actions.filter((action) => authorize(anybody, action, elsewhere).ok);
    const everyTenant = ["health", "service.describe", "issuer.read", "worker.register"];
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

import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { principal } from "#access/principal.ts";
import { grantOpener } from "#issuer/grant-token.ts";
import { Issuer } from "#issuer/issuer.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { newKeyLine, parseKeys } from "#vault/key-list.ts";
import { openVault } from "#vault/vault.ts";
import { newRegistration, readRegistration, registrationText } from "./registration-token.ts";
import { WorkerRegistry } from "./registry.ts";
import { versionProblem } from "./version-floor.ts";

const line = newKeyLine();
const wanted = { name: "box", pools: ["gpu"], labels: ["door=shell"], isEphemeral: false, uses: 1, ttlMs: 60_000 };
const about = { version: "0.2.0", slots: 2 };
const instance = (digit: string): string => digit.repeat(32);

function rig(versionMin?: string) {
  const clock = new ManualClock(Date.UTC(2026, 10, 18));
  const records = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  const vault = openVault({ records, clock, source: { read: async () => parseKeys(line, "test") } }, "system");
  const issuer = new Issuer({ name: "urn:test", vault, clock });
  const registry = new WorkerRegistry({ records, issuer, clock, versionMin });
  const open = grantOpener(issuer, { isLive: async () => false, isWorker: registry.isMember });
  return { clock, records, registry, open };
}

describe("workers that register", () => {
  test("WR2 get tenant, pools and labels of their token, and renew until they are removed", async () => {
    const { registry, open, clock } = rig();
    const { token } = await registry.makeToken("acme", "ada", wanted);
    const first = await registry.register(token, instance("a"), about);
    const opened = await open(first.token);
    ok(opened.ok);
    const { tenant, pools, labels, roles, worker = "" } = opened.principal;
    deepEqual([tenant, pools, labels, [...roles]], ["acme", ["gpu"], ["os=*", "arch=*", "door=shell"], ["executor"]]);
    match(first.name, /^box-[0-9a-f]{12}$/);
    await clock.advance(3_000_000);
    const next = await registry.renew(opened.principal, about);
    await clock.advance(1_000_000);
    equal((await open(first.token)).ok, false, "it has expired");
    ok((await open(next.token)).ok);
    await registry.members.remove("acme", worker);
    const after = await open(next.token);
    equal(after.ok ? "" : after.refusal.reason, "worker-removed");
    await rejects(registry.renew(opened.principal, about), /removed/);
    await rejects(registry.register(token, instance("a"), about), /expired/);
  });

  test("WR1 as many as the token says; the same instance again is the same worker", async () => {
    const { registry } = rig();
    const { token } = await registry.makeToken("acme", "ada", { ...wanted, uses: 2 });
    const [one, again, two] = [
      await registry.register(token, instance("a"), about),
      await registry.register(token, instance("a"), about),
      await registry.register(token, instance("b"), about),
    ];
    equal(one.name, again.name);
    ok(one.name !== two.name);
    await rejects(registry.register(token, instance("c"), about), /as often as it may be/);
    const racing = await registry.makeToken("acme", "ada", wanted);
    const settled = await Promise.allSettled(
      ["d", "e", "f"].map((digit) => registry.register(racing.token, instance(digit), about)),
    );
    equal(settled.filter(({ status }) => status === "fulfilled").length, 1);
  });

  test("WR1 a token that has expired, was revoked or changed, or is another tenant's registers none", async () => {
    const { registry, clock, records } = rig();
    const { token, record } = await registry.makeToken("acme", "ada", { ...wanted, uses: 9 });
    const parts = readRegistration(token);
    ok(parts);
    const { documents } = { documents: (await records.list({ kind: "worker.registration", limit: 9 })).records };
    for (const { document } of documents) ok(!document.includes(parts.secret), "only its hash is kept");
    for (const changed of [{ tenant: "globex" }, { secret: newRegistration("acme").secret }, { id: "r-000000000000" }])
      await rejects(registry.register(registrationText({ ...parts, ...changed }), instance("a"), about), /not known/);
    for (const text of ["", "mrw1", `${token}.x`, token.replace("mrw1", "mrw2")])
      await rejects(registry.register(text, instance("a"), about), /not known/);
    await clock.advance(60_000);
    await rejects(registry.register(token, instance("a"), about), /expired/);
    const other = await registry.makeToken("acme", "ada", wanted);
    equal(await registry.registrations.read("acme", record.name), undefined, "the expired one is forgotten");
    await registry.registrations.remove("acme", other.record.name);
    await rejects(registry.register(other.token, instance("a"), about), /not known/);
  });

  test("an ephemeral one registers once", async () => {
    const { registry } = rig();
    const { token } = await registry.makeToken("acme", "ada", { ...wanted, isEphemeral: true });
    ok((await registry.register(token, instance("a"), about)).isEphemeral);
    await rejects(registry.register(token, instance("a"), about), /register another/);
  });

  test("one that is too old does not register, and is asked to leave", async () => {
    const { registry } = rig("0.3.0");
    const { token } = await registry.makeToken("acme", "ada", wanted);
    await rejects(registry.register(token, instance("a"), about), /0\.3\.0 or newer: update/);
    const { name } = await registry.register(token, instance("a"), { ...about, version: "0.3.0" });
    const { id } = { id: `w-${name.slice("box-".length)}` };
    const who = { ...principal({ name, tenant: "acme", roles: ["executor"] }, "issued"), worker: id };
    match((await registry.renew(who, about)).drain ?? "", /update/);
    equal((await registry.renew(who, { ...about, version: "1.0.0" })).drain, undefined);
  });

  const versions: readonly (readonly [string, string | undefined, boolean])[] = [
    ["0.1.0", undefined, true],
    ["0.1.0", "0.1.0", true],
    ["0.1.0", "0.1.1", false],
    ["0.10.0", "0.9.9", true],
    ["1.0.0-beta", "1.0.0", true],
    ["0.9.9", "1.0.0", false],
    ["nonsense", "0.0.1", false],
  ];
  for (const [version, least, isGood] of versions)
    test(`version ${version}, at least ${least}: ${isGood ? "stays" : "leaves"}`, () =>
      equal(versionProblem(version, least) === undefined, isGood));
});

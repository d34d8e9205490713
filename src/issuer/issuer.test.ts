import { deepEqual, equal, notEqual, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { exportJWK, exportSPKI, generateKeyPair, SignJWT, UnsecuredJWT, type CryptoKey } from "jose";
import { ManualClock } from "#base/testing/manual-clock.ts";
import type { ClaimOf, Grant } from "#access/principal.ts";
import { Fault } from "#base/fault.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { newKeyLine, parseKeys } from "#vault/key-list.ts";
import { openVault } from "#vault/vault.ts";
import { clusterAudience, grantOpener, issueGrant, type Bindings } from "./grant-token.ts";
import { Issuer, tokenMsMax } from "./issuer.ts";

const name = "https://millrace.example";
const hourMs = 3_600_000;
const rules = { signsForMs: 10 * 24 * hourMs, announcedMs: hourMs, tokenMsMax, skewMs: 60_000 };

/** Nodes of one cluster: they share records and the vault's keys, and nothing else. */
function cluster() {
  const clock = new ManualClock(Date.UTC(2026, 10, 18));
  const records = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  const line = newKeyLine();
  const source = { read: async () => parseKeys(line, "test") };
  const node = (): Issuer => new Issuer({ name, rules, clock, vault: openVault({ records, source, clock }, "system") });
  return { clock, records, node };
}

const wanted = { audience: clusterAudience, subject: "x", forMs: hourMs, claims: {} };

async function reason(issuer: Issuer, token: string, audience = clusterAudience): Promise<string> {
  const verified = await issuer.verify(token, audience);
  return verified.ok ? "ok" : verified.reason;
}

describe("the issuer", () => {
  test("what one node signs, every node verifies; nodes that begin at once agree on one key", async () => {
    const { node } = cluster();
    const nodes = [node(), node(), node()];
    const tokens = await Promise.all(nodes.map(async (each) => (await each.issue(wanted)).token));
    for (const token of tokens) for (const each of nodes) equal(await reason(each, token), "ok");
    for (const each of nodes) equal((await each.keys.ring()).trusted.length, 1);
  });

  test("IS3 wrong audience, expired, of another cluster, without a signature: refused", async () => {
    const { node, clock } = cluster();
    const [one, other] = [node(), cluster().node()];
    const { token, untilMs } = await one.issue(wanted);
    equal(await reason(one, token, "sts.example"), "audience-wrong");
    equal(await reason(one, (await one.issue({ ...wanted, audience: "sts.example" })).token), "audience-wrong");
    equal(await reason(one, (await other.issue(wanted)).token), "signature-wrong");
    const [head, body, signature = ""] = token.split(".");
    equal(await reason(one, `${head}.${body}.${signature.slice(0, -2)}AA`), "signature-wrong");
    equal(await reason(one, `${head}.${body}.`), "signature-wrong");
    for (const bad of ["", "x", "a.b.c", "eyJhbGciOiJFUzI1NiJ9.e30.x"]) notEqual(await reason(one, bad), "ok");
    await clock.advance(untilMs - clock.wallMs() - 1);
    equal(await reason(one, token), "ok");
    await clock.advance(1);
    equal(await reason(one, token), "token-expired");
  });

  test("IS3 keys and algorithms cannot be confused: none, HS256 with the public key, a key in the header", async () => {
    const { node } = cluster();
    const one = node();
    await one.issue(wanted);
    const { signing } = await one.keys.ring();
    ok(signing);
    const { kid } = signing;
    const claims = { iss: name, aud: clusterAudience, sub: "x", iat: 1, exp: 9e9 };
    equal(await reason(one, new UnsecuredJWT(claims).encode()), "algorithm-refused");
    const mine = await generateKeyPair("ES256", { extractable: true });
    const jwk = await exportJWK(mine.publicKey);
    const forge = (key: CryptoKey | Uint8Array, header: { readonly alg: string } & Record<string, unknown>) =>
      new SignJWT(claims).setProtectedHeader({ kid, ...header }).sign(key);
    equal(await reason(one, await forge(mine.privateKey, { alg: "ES256" })), "signature-wrong");
    equal(await reason(one, await forge(mine.privateKey, { alg: "ES256", jwk })), "signature-wrong");
    const secrets = [JSON.stringify(signing.jwk), await exportSPKI(signing.publicKey), String(signing.jwk.x)];
    for (const secret of secrets)
      equal(await reason(one, await forge(Buffer.from(secret), { alg: "HS256" })), "algorithm-refused");
    const rsa = await generateKeyPair("RS256");
    equal(await reason(one, await forge(rsa.privateKey, { alg: "RS256" })), "algorithm-refused");
    const none = `${Buffer.from(JSON.stringify({ alg: "ES256", kid: "none" })).toString("base64url")}.e30.AA`;
    equal(await reason(one, none), "signature-wrong");
  });

  test("IS1 keys change by themselves and by hand; tokens of the old one count until they end", async () => {
    const { node, clock } = cluster();
    const [one, other] = [node(), node()];
    const first = await one.issue({ ...wanted, forMs: tokenMsMax });
    await clock.advance(rules.signsForMs - hourMs / 2);
    const late = await one.issue({ ...wanted, forMs: tokenMsMax });
    equal((await one.keys.ring()).trusted.length, 2, "the next one is published");
    await clock.advance(2 * hourMs);
    const fresh = await other.issue(wanted);
    equal(await reason(other, late.token), "ok", "signed by the key before");
    equal(await reason(one, fresh.token), "ok");
    equal(await reason(one, first.token), "token-expired");
    await clock.advance(tokenMsMax + hourMs);
    equal((await one.keys.ring()).trusted.length, 1, "the old one is gone");
    const before = await one.issue(wanted);
    const key = await other.keys.replace({ revokes: false });
    equal((await other.keys.ring()).signing?.kid, key);
    equal(await reason(other, before.token), "ok");
    const leaked = await other.issue(wanted);
    await other.keys.replace({ revokes: true });
    equal(await reason(other, leaked.token), "signature-wrong");
    await clock.advance(31_000);
    equal(await reason(one, leaked.token), "signature-wrong", "on every node within half a minute");
    equal(await reason(one, (await other.issue(wanted)).token), "ok");
  });

  test("private keys are nowhere in the clear; published ones hold nothing private", async () => {
    const { node, records } = cluster();
    const one = node();
    await one.issue(wanted);
    const { trusted } = await one.keys.ring();
    for (const { jwk } of trusted)
      deepEqual(Object.keys(jwk).toSorted(), ["alg", "crv", "kid", "kty", "use", "x", "y"]);
    const kept = (await records.list({ kind: "vault.system", limit: 10 })).records;
    equal(kept.length, 1);
    for (const { document } of kept) ok(!document.includes(String(trusted[0]?.jwk.x)));
  });

  test("while the vault cannot be opened nothing is issued, and nothing is believed", async () => {
    const { clock, records, node } = cluster();
    const { token } = await node().issue(wanted);
    const source = {
      read: async () => {
        throw new Fault("unavailable", "read the vault's keys", {});
      },
    };
    const blind = new Issuer({ name, clock, vault: openVault({ records, source, clock }, "system") });
    equal(await reason(blind, token), "keys-unavailable");
    await rejects(blind.issue(wanted), /read the vault/);
  });
});

describe("tokens that are bound", () => {
  const claim: ClaimOf = { tenant: "acme", job: "j0-1", task: "t0-1", attempt: 1, token: 7 };
  const grant: Grant = { name: "task:t0-1", tenant: "acme", roles: ["task"] };
  const bindings: Bindings = { isLive: async () => true, isWorker: async () => true };
  const bound = async (more: Partial<Bindings>, given: Grant = grant, to: object = { claim }) => {
    const { node } = cluster();
    const issuer = node();
    const { token } = await issueGrant(issuer, given, to as { readonly claim: ClaimOf }, hourMs);
    return await grantOpener(issuer, { ...bindings, ...more })(token);
  };
  const told = async (...args: Parameters<typeof bound>): Promise<string> => {
    const opened = await bound(...args);
    return opened.ok ? [...opened.principal.roles].join() : opened.refusal.reason;
  };

  test("IS4 one of a claim names its attempt, and dies with it", async () => {
    const opened = await bound({});
    ok(opened.ok);
    deepEqual(opened.principal.claim, claim);
    equal(opened.principal.tenant, "acme");
    ok(opened.verifiedForMs <= 1_000);
    equal(await told({ isLive: async (asked) => asked.token !== 7 }), "claim-over");
    equal(await told({ isLive: () => Promise.reject(new Fault("unavailable", "ask", {})) }), "binding-unclear");
  });

  test("one of a worker dies with the worker", async () => {
    const worker: Grant = { name: "w", tenant: "acme", roles: ["executor"], pools: ["gpu"], labels: ["a=b"] };
    const opened = await bound({}, worker, { worker: "w1" });
    ok(opened.ok);
    deepEqual([opened.principal.pools, opened.principal.labels, opened.principal.claim], [["gpu"], ["a=b"], undefined]);
    equal(await told({ isWorker: async (tenant) => tenant !== "acme" }, worker, { worker: "w1" }), "worker-removed");
  });

  test("one that is bound to nothing, or has a task's claim and other rights, is refused", async () => {
    equal(await told({}, grant, {}), "claims-insufficient");
    equal(await told({}, { ...grant, roles: ["member"] }), "claims-insufficient");
    equal(await told({}, { ...grant, roles: ["task", "executor"] }), "claims-insufficient");
    equal(await told({}, { ...grant, roles: ["operator"], tenant: "*" }, { worker: "w" }), "claims-insufficient");
    equal(await told({}, grant, { worker: "w" }), "claims-insufficient");
    equal(await told({}, { ...grant, tenant: "*" }), "claims-insufficient");
  });
});

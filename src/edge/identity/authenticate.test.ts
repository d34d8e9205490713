import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ManualClock } from "#base/testing/manual-clock.ts";
import {
  Authenticator,
  type AuthenticatorLimits,
  type Credentials,
  type KnownCallers,
  type TaskVerdict,
} from "./authenticate.ts";
import { newToken, tokenSha256 } from "./bearer.ts";
import { ConnectionIdentity } from "./connection-identity.ts";
import { certificateRules } from "./certificate-rules.ts";
import type { Identified } from "./identified.ts";
import { keySet } from "./jwt/jwks.ts";
import { testIssuer, testNowMs } from "#edge/testing/jwt.ts";
import { jwtVerifier, type JwtVerifier } from "./jwt/verifier.ts";
import { fixedKeys } from "./jwt/key-ring.ts";
import { principal } from "#access/principal.ts";
import { unauthenticatedReasons } from "#access/refusal.ts";
import { staticTokens } from "./static-tokens.ts";
import { VerifiedCache } from "./verified-cache.ts";

const issuer = await testIssuer();
const genuine = jwtVerifier([{ config: issuer.config(), keys: fixedKeys(keySet(issuer.jwks.keys, "test")) }]);
const secret = newToken();
const certificate = { trusted: true, names: [{ kind: "CN", value: "build-7" }] } as const;
const anonymous: Identified = {
  ok: true,
  principal: principal({ name: "anonymous", tenant: "public", roles: ["viewer"] }, "anonymous"),
  untilMs: Infinity,
};

function rig(more: Partial<KnownCallers> = {}, limits: Partial<AuthenticatorLimits> = {}) {
  const clock = new ManualClock(testNowMs);
  let verifications = 0;
  const counting: JwtVerifier = (token, nowMs) => {
    verifications += 1;
    return genuine(token, nowMs);
  };
  const known: KnownCallers = {
    tokens: staticTokens([{ name: "ci", tenant: "acme", roles: ["member"], sha256: tokenSha256(secret) }]),
    verifyJwt: counting,
    certificates: certificateRules([{ match: "CN:build-*", tenant: "acme", roles: ["executor"] }]),
    anonymous: { outcome: anonymous, loopbackOnly: true },
    ...more,
  };
  const authenticator = new Authenticator(
    known,
    {
      tokenLengthMax: 8_192,
      verifiedMax: 100,
      verifiedForMs: 300_000,
      verifyingMax: 64,
      verifyingPerAddressMax: 64,
      ...limits,
    },
    clock,
  );
  const ask = (credentials: Partial<Credentials>): Identified | Promise<Identified> =>
    authenticator.authenticate({
      authorization: undefined,
      certificate: undefined,
      address: "10.0.0.7",
      ...credentials,
    });
  return { clock, known, authenticator, ask, verifications: () => verifications };
}

const told = (outcome: Identified): string =>
  outcome.ok ? `${outcome.principal.name} by ${outcome.principal.proof}` : outcome.refusal.reason;
const now = (outcome: Identified | Promise<Identified>): string =>
  outcome instanceof Promise ? "a promise" : told(outcome);

describe("authentication", () => {
  test("uses a token, else a certificate, else none: the first credential shown decides (I1)", async () => {
    const { ask } = rig();
    const jwt = await issuer.sign();
    const cases: readonly (readonly [Partial<Credentials>, string])[] = [
      [{ authorization: `Bearer ${secret}` }, "ci by token"],
      [{ authorization: `Bearer ${jwt}` }, "ada by jwt"],
      [{ certificate }, "build-7 by certificate"],
      [{ address: "127.0.0.1" }, "anonymous by anonymous"],
      [{ address: "::1" }, "anonymous by anonymous"],
      [{ address: "unix" }, "anonymous by anonymous"],
      [{ address: "10.0.0.7" }, "credentials-missing"],
      [{ address: "" }, "credentials-missing"],
      [{ authorization: `Bearer ${secret}`, certificate, address: "127.0.0.1" }, "ci by token"],
      [{ authorization: "Bearer wrong", certificate, address: "127.0.0.1" }, "token-unknown"],
      [{ authorization: "Basic YTpi", certificate, address: "127.0.0.1" }, "scheme-unsupported"],
      [{ authorization: "", certificate, address: "127.0.0.1" }, "scheme-unsupported"],
      [{ certificate: { ...certificate, trusted: false }, address: "127.0.0.1" }, "certificate-untrusted"],
      [{ certificate: { trusted: true, names: [] }, address: "127.0.0.1" }, "certificate-unknown"],
    ];
    for (const [credentials, expected] of cases)
      equal(told(await ask(credentials)), expected, JSON.stringify(credentials).slice(0, 80));
  });

  test("accepts no caller without credentials by default", async () => {
    const { ask } = rig({ anonymous: undefined, certificates: undefined });
    for (const address of ["127.0.0.1", "unix", "10.0.0.7"]) equal(now(ask({ address })), "credentials-missing");
    equal(now(ask({ certificate })), "credentials-missing");
  });

  test("accepts anonymous callers from anywhere if the settings say so", () => {
    const { ask } = rig({ anonymous: { outcome: anonymous, loopbackOnly: false } });
    equal(now(ask({ address: "10.0.0.7" })), "anonymous by anonymous");
  });

  test("accepts no task without credentials, nor a caller that may be one (I4)", async () => {
    for (const loopbackOnly of [true, false]) {
      const { ask } = rig({ anonymous: { outcome: anonymous, loopbackOnly } });
      const asked = (verdict: TaskVerdict, more: Partial<Credentials> = {}) =>
        ask({ address: "127.0.0.1", isTask: () => verdict, ...more });
      equal(now(asked("no")), "anonymous by anonymous");
      equal(now(asked("task")), "caller-is-task");
      equal(now(asked("unclear")), "caller-unclear");
      equal(told(await ask({ address: "::1", isTask: async (): Promise<TaskVerdict> => "task" })), "caller-is-task");
      equal(now(asked("task", { authorization: `Bearer ${secret}` })), "ci by token", "one that was given a token");
      equal(now(asked("task", { certificate })), "build-7 by certificate");
    }
  });

  test("answers at once for known callers, and verifies a token once (I3)", async () => {
    const { ask, verifications } = rig();
    const authorization = `Bearer ${await issuer.sign()}`;
    equal(now(ask({ authorization: `Bearer ${secret}` })), "ci by token");
    const burst = Array.from({ length: 64 }, () => ask({ authorization }));
    ok(burst.every((outcome) => outcome instanceof Promise));
    for (const outcome of await Promise.all(burst)) equal(told(outcome), "ada by jwt");
    equal(now(ask({ authorization })), "ada by jwt");
    equal(verifications(), 1);
  });

  test("trusts a verified token until it expires, or for five minutes", async () => {
    const { ask, clock, verifications } = rig();
    const authorization = `Bearer ${await issuer.sign()}`;
    await ask({ authorization });
    await clock.advance(299_999);
    equal(now(ask({ authorization })), "ada by jwt");
    await clock.advance(1);
    equal(told(await ask({ authorization })), "ada by jwt");
    equal(verifications(), 2);
    await clock.advance(300_000); // expired, but within the skew
    equal(told(await ask({ authorization })), "ada by jwt");
    await clock.advance(29_999);
    equal(now(ask({ authorization })), "ada by jwt");
    await clock.advance(1);
    equal(told(await ask({ authorization })), "token-expired");
    await ask({ authorization });
    equal(verifications(), 5, "a refusal is not remembered");
  });

  test("verifies it again when the wall clock was set back", async () => {
    const { clock, authenticator, ask, verifications } = rig();
    const authorization = `Bearer ${await issuer.sign()}`;
    const caller = new ConnectionIdentity(authenticator, clock, { certificate: undefined, address: "10.0.0.7" });
    await ask({ authorization });
    equal(now(caller.identify(authorization)), "ada by jwt");
    clock.wallAheadMs -= 3_600_000;
    await clock.advance(299_000);
    equal(now(caller.identify(authorization)), "ada by jwt");
    equal(verifications(), 1);
    await clock.advance(2_000);
    ok(caller.identify(authorization) instanceof Promise);
    equal(verifications(), 2);
  });

  test("verifies a limited number at once, and asks the others to retry (I3)", async () => {
    const gate = Promise.withResolvers<Identified>();
    const { ask } = rig({ verifyJwt: () => gate.promise }, { verifyingMax: 2 });
    const tokens = await Promise.all(["a", "b", "c"].map((sub) => issuer.sign({ sub })));
    const [one, two, three] = tokens.map((token) => ask({ authorization: `Bearer ${token}` }));
    ok(one instanceof Promise && two instanceof Promise && three !== undefined);
    equal(now(three), "verifier-busy");
    equal(now(ask({ authorization: `Bearer ${secret}` })), "ci by token", "the others do not notice");
    gate.resolve(anonymous);
    await Promise.all([one, two]);
    ok(ask({ authorization: `Bearer ${tokens[2]}` }) instanceof Promise);
  });

  test("verifies a limited number per address, so that one address cannot delay others", async () => {
    const gate = Promise.withResolvers<Identified>();
    const { ask } = rig({ verifyJwt: () => gate.promise }, { verifyingMax: 8, verifyingPerAddressMax: 2 });
    const tokens = await Promise.all(["a", "b", "c", "d", "e"].map((sub) => issuer.sign({ sub })));
    const from = (address: string) => tokens.map((token) => now(ask({ authorization: `Bearer ${token}`, address })));
    const busy = "verifier-busy";
    deepEqual(from("2001:db8::1"), ["a promise", "a promise", busy, busy, busy]);
    const others = await Promise.all(["f", "g", "h"].map((sub) => issuer.sign({ sub })));
    const ofOthers = (address: string) =>
      others.map((token) => now(ask({ authorization: `Bearer ${token}`, address })));
    deepEqual(ofOthers("2001:db8::2"), [busy, busy, busy], "an IPv6 network counts as one");
    deepEqual(ofOthers("10.0.0.7"), ["a promise", "a promise", busy]);
    gate.resolve(anonymous);
    await gate.promise;
    await new Promise((turn) => setImmediate(turn));
    equal(now(ask({ authorization: `Bearer ${others[2]}`, address: "2001:db8::1" })), "a promise");
  });

  test("forgets cached results when its settings are replaced", async () => {
    const { ask, authenticator, known } = rig();
    const authorization = `Bearer ${await issuer.sign()}`;
    await ask({ authorization });
    const lateToken = await issuer.sign({ sub: "late" });
    const late = ask({ authorization: `Bearer ${lateToken}` });
    authenticator.replace({ ...known, tokens: staticTokens([]), verifyJwt: undefined });
    await late;
    equal(now(ask({ authorization })), "token-unknown");
    equal(now(ask({ authorization: `Bearer ${lateToken}` })), "token-unknown", "not even what was under way");
    equal(now(ask({ authorization: `Bearer ${secret}` })), "token-unknown");
  });

  test("a bug in verification reaches the caller as an error, and leaves nothing behind", async () => {
    const { ask } = rig({ verifyJwt: () => Promise.reject(new TypeError("a bug")) }, { verifyingMax: 1 });
    const authorization = `Bearer ${await issuer.sign()}`;
    for (let call = 0; call < 3; call += 1)
      equal(await Promise.resolve(ask({ authorization })).then(told, String), "TypeError: a bug");
  });

  test("refuses any text that is not a token, and never throws", async () => {
    const { ask } = rig();
    const jwt = await issuer.sign();
    const mutated = fc
      .tuple(
        fc.nat({ max: jwt.length - 1 }),
        fc.constantFrom("A", "z", "0", "-", "_", ".", "=", "/", " ", "\u0000", "é"),
      )
      .map(([at, letter]) => jwt.slice(0, at) + letter + jwt.slice(at + 1));
    const header = fc.oneof(
      fc.string(),
      fc.string().map((text) => `Bearer ${text}`),
      mutated.map((text) => `Bearer ${text}`),
    );
    await fc.assert(
      fc.asyncProperty(header, async (authorization) => {
        const outcome = await ask({ authorization, certificate, address: "127.0.0.1" });
        // The last letter of a signature has spare bits: another letter may mean the same signature.
        const same = authorization.slice(0, -1) === `Bearer ${jwt}`.slice(0, -1);
        ok(!outcome.ok || same, authorization);
      }),
      { numRuns: 300 },
    );
  });

  test("its refusals do not depend on what was sent (I2)", () => {
    const { ask } = rig();
    const refusals = ["Bearer wrong-but-secret-0123456789", "Basic c2VjcmV0"].map((authorization) =>
      ask({ authorization }),
    );
    for (const outcome of refusals) {
      ok(!(outcome instanceof Promise) && !outcome.ok);
      equal(outcome.refusal.message, unauthenticatedReasons[outcome.refusal.reason]);
    }
  });
});

describe("a caller", () => {
  test("that repeats its credentials is known without a lookup, until they expire", async () => {
    const { authenticator, clock, known, verifications } = rig();
    const caller = new ConnectionIdentity(authenticator, clock, { certificate: undefined, address: "10.0.0.7" });
    const authorization = `Bearer ${await issuer.sign()}`;
    await caller.identify(authorization);
    const first = caller.identify(authorization);
    equal(now(first), "ada by jwt");
    ok(caller.identify(authorization) === first);
    equal(now(caller.identify(undefined)), "credentials-missing");
    equal(now(caller.identify(`Bearer ${secret}`)), "ci by token");
    equal(now(caller.identify(authorization)), "ada by jwt");
    await clock.advance(300_000);
    equal(now(caller.identify(authorization)), "a promise");
    equal(verifications(), 2);
    equal(now(caller.identify(`Bearer ${secret}`)), "ci by token");
    authenticator.replace({ ...known, tokens: staticTokens([]) });
    equal(now(caller.identify(`Bearer ${secret}`)), "token-unknown");
  });

  test("is checked once per connection, to see whether it is a task", async () => {
    const { authenticator, clock, known } = rig();
    let looks = 0;
    const isTask = async (): Promise<TaskVerdict> => ((looks += 1), "no");
    const caller = new ConnectionIdentity(authenticator, clock, {
      certificate: undefined,
      address: "127.0.0.1",
      isTask,
    });
    await Promise.all([caller.identify(undefined), caller.identify(undefined)]);
    equal(now(caller.identify(undefined)), "anonymous by anonymous");
    authenticator.replace({ ...known });
    await caller.identify(undefined);
    equal(looks, 1);
  });

  test("is checked again with the next call if the check was unclear", async () => {
    const { authenticator, clock } = rig();
    const verdicts: TaskVerdict[] = ["unclear", "unclear", "no", "task"];
    const isTask = async (): Promise<TaskVerdict> => verdicts.shift() ?? "task";
    const caller = new ConnectionIdentity(authenticator, clock, {
      certificate: undefined,
      address: "127.0.0.1",
      isTask,
    });
    equal(told(await caller.identify(undefined)), "caller-unclear");
    equal(told(await caller.identify(undefined)), "caller-unclear");
    equal(told(await caller.identify(undefined)), "anonymous by anonymous");
    equal(told(await caller.identify(undefined)), "anonymous by anonymous");
    deepEqual(verdicts, ["task"]);
  });

  test("is identified by its certificate when it sends no token", () => {
    const { authenticator, clock } = rig();
    const caller = new ConnectionIdentity(authenticator, clock, { certificate, address: "10.0.0.7" });
    ok(caller.identify(undefined) === caller.identify(undefined));
    equal(now(caller.identify(undefined)), "build-7 by certificate");
  });
});

describe("what was verified", () => {
  test("is limited: the least recently used entry goes first", () => {
    const cache = new VerifiedCache(2);
    const entry = anonymous as Identified & { ok: true };
    cache.put("a", entry);
    cache.put("b", entry);
    const clock = new ManualClock(0);
    cache.get("a", clock);
    cache.put("c", entry);
    deepEqual(
      ["a", "b", "c"].map((key) => cache.get(key, clock) !== undefined),
      [true, false, true],
    );
    cache.put("d", { ...entry, untilMs: 5 });
    equal(cache.get("d", new ManualClock(5)), undefined);
    equal(cache.size, 1);
  });
});

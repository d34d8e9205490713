import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { Fault, isFault } from "#base/fault.ts";
import { keySet, keySetOfText } from "./jwks.ts";
import { testIssuer, testNowMs } from "#edge/testing/jwt.ts";
import { jwtVerifier, looksLikeJwt } from "./verifier.ts";
import { fixedKeys } from "./key-ring.ts";

const acme = await testIssuer();
const verifier = (more: Record<string, unknown> = {}) =>
  jwtVerifier([{ config: acme.config(more), keys: fixedKeys(keySet(acme.jwks.keys, "test")) }]);
const verify = verifier();

const reasonOf = async (token: string, nowMs = testNowMs, by = verify): Promise<string> => {
  const outcome = await by(token, nowMs);
  return outcome.ok ? "ok" : outcome.refusal.reason;
};
const nowS = testNowMs / 1_000;

describe("a JSON Web Token", () => {
  test("becomes a principal until it expires", async () => {
    const outcome = await verify(await acme.sign(), testNowMs);
    ok(outcome.ok);
    const { name, tenant, roles, proof } = outcome.principal;
    deepEqual([name, tenant, [...roles], proof], ["ada", "acme", ["member"], "jwt"]);
    equal(outcome.untilMs, testNowMs + 600_000 + 30_000);
  });

  const refused: readonly (readonly [what: string, claims: Record<string, unknown>, reason: string])[] = [
    ["expired", { exp: nowS - 31, iat: nowS - 60 }, "token-expired"],
    ["expired within the skew", { exp: nowS - 29, iat: nowS - 60 }, "ok"],
    ["not yet valid", { nbf: nowS + 31 }, "token-not-yet-valid"],
    ["not yet valid within the skew", { nbf: nowS + 29 }, "ok"],
    ["valid for ever", { exp: undefined }, "token-lifetime"],
    ["valid for too long", { exp: nowS + 86_401 }, "token-lifetime"],
    ["valid for too long, not saying since when", { exp: nowS + 86_401, iat: undefined }, "token-lifetime"],
    ["valid for too long, said to be issued later", { exp: nowS + 90_000, iat: nowS + 89_000 }, "token-lifetime"],
    ["issued by a stranger", { iss: "https://evil.example" }, "issuer-unknown"],
    ["issued by nobody", { iss: undefined }, "issuer-unknown"],
    ["for somebody else", { aud: "other" }, "audience-wrong"],
    ["for nobody", { aud: undefined }, "audience-wrong"],
    ["for several, us among them", { aud: ["other", "millrace"] }, "ok"],
    ["without a tenant", { org: undefined }, "claims-insufficient"],
    ["of all tenants, it says", { org: "*" }, "claims-insufficient"],
    ["without a role", { groups: ["strangers"] }, "claims-insufficient"],
    ["with an exp that is no number", { exp: "soon" }, "claims-insufficient|token-malformed|token-lifetime"],
  ];
  for (const [what, claims, reason] of refused)
    test(`${what}: ${reason}`, async () => {
      const got = await reasonOf(await acme.sign(claims));
      ok(reason.split("|").includes(got), got);
    });

  test("is refused when another key signed it, under the same key id or another", async () => {
    const impostor = await testIssuer(acme.name);
    equal(await reasonOf(await impostor.sign()), "signature-wrong");
    equal(await reasonOf(await impostor.sign({}, { kid: "k2" })), "signature-wrong");
  });

  test("is refused when one character of it was changed", async () => {
    const token = await acme.sign();
    const [header = "", payload = "", signature = ""] = token.split(".");
    const richer = JSON.parse(Buffer.from(payload, "base64url").toString()) as object;
    const forged = Buffer.from(JSON.stringify({ ...richer, org: "globex" })).toString("base64url");
    equal(await reasonOf(`${header}.${forged}.${signature}`), "signature-wrong");
    const flipped = (signature.startsWith("A") ? "B" : "A") + signature.slice(1);
    equal(await reasonOf(`${header}.${payload}.${flipped}`), "signature-wrong");
  });

  test("is refused without a signature, and with the public key used as a shared secret", async () => {
    const claims = { iss: acme.name, aud: "millrace", sub: "ada", org: "acme", groups: ["builders"], exp: nowS + 60 };
    const unsigned = new UnsecuredJWT(claims).encode();
    ok(["algorithm-refused", "token-malformed"].includes(await reasonOf(unsigned)));
    const publicKeyAsSecret = new TextEncoder().encode(JSON.stringify(acme.jwks.keys[0]));
    const confused = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: "k1" }).sign(publicKeyAsSecret);
    equal(await reasonOf(confused), "algorithm-refused");
  });

  test("is refused when its algorithm is not in the list, though the key would fit", async () => {
    equal(await reasonOf(await acme.sign(), testNowMs, verifier({ algorithms: ["RS256"] })), "algorithm-refused");
  });

  test("is malformed if it does not parse", async () => {
    for (const text of ["eyJ.e30.x", "eyJhbGciOiJFUzI1NiJ9.!!.x", "a.b.c", "", "eyJhbGciOiJFUzI1NiJ9.e30."])
      ok(["token-malformed", "issuer-unknown"].includes(await reasonOf(text)), text);
  });

  test("is distinguished from other tokens by its form", async () => {
    ok(looksLikeJwt(await acme.sign()));
    for (const text of ["millrace_abc", "a.b.c", "eyJabc", "eyJa.b.c.d.e"]) ok(!looksLikeJwt(text), text);
  });

  test("of an issuer with several algorithms is verified with each of its keys", async () => {
    const rsa = await testIssuer(acme.name, "r1", "RS256");
    const edwards = await testIssuer(acme.name, "e1", "EdDSA");
    const keys = fixedKeys(keySet([...acme.jwks.keys, ...rsa.jwks.keys, ...edwards.jwks.keys], "test"));
    const all = jwtVerifier([{ config: acme.config({ algorithms: ["ES256", "RS256", "EdDSA"] }), keys }]);
    for (const issuer of [acme, rsa, edwards]) equal(await reasonOf(await issuer.sign(), testNowMs, all), "ok");
  });

  test("waits for newer keys when it names an unknown one, and fetches them once", async () => {
    const next = await testIssuer(acme.name, "k2");
    let asked = 0;
    const keys = {
      current: () => Promise.resolve(keySet(acme.jwks.keys, "test")),
      newer: () => Promise.resolve((asked += 1) === 1 ? keySet(next.jwks.keys, "test") : undefined),
    };
    const rotating = jwtVerifier([{ config: acme.config(), keys }]);
    equal(await reasonOf(await next.sign(), testNowMs, rotating), "ok");
    equal(await reasonOf(await next.sign({}, { kid: "k3" }), testNowMs, rotating), "signature-wrong");
    equal(asked, 2);
  });

  test("is refused for now when the keys cannot be fetched; a bug is not reported like that", async () => {
    const without = (error: Error) =>
      jwtVerifier([
        {
          config: acme.config(),
          keys: { current: () => Promise.reject(error), newer: () => Promise.resolve(undefined) },
        },
      ]);
    const outcome = await without(new Fault("unavailable", "fetch"))(await acme.sign(), testNowMs);
    ok(!outcome.ok && outcome.refusal.retryable);
    equal(outcome.refusal.reason, "keys-unavailable");
    await rejects(without(new TypeError("a bug"))(await acme.sign(), testNowMs), TypeError);
  });
});

describe("an issuer's keys", () => {
  const problem = (text: string): string => {
    try {
      keySetOfText(text, "keys.json");
      return "none";
    } catch (error) {
      ok(isFault(error, "invalid"));
      return String(error.facts["why"]);
    }
  };

  test("must be public, or are refused with advice", async () => {
    const { privateKey } = await generateKeyPair("ES256", { extractable: true });
    for (const secret of [await exportJWK(privateKey), { kty: "oct", k: "c2VjcmV0" }])
      equal(/replace the secret one/.test(problem(JSON.stringify({ keys: [secret] }))), true);
    equal(problem(JSON.stringify(acme.jwks)), "none");
    equal(problem("nonsense"), 'it is not JSON; a key set looks like {"keys": [...]}');
    for (const text of ["null", "[]", '{"keys":{}}']) ok(problem(text).startsWith("there is no list of keys"), text);
    for (const text of ['{"keys":[]}', `{"keys":[${Array.from({ length: 101 }, () => "{}").join()}]}`])
      ok(problem(text).includes("expected are 1 to 100"));
    ok(problem('{"keys":[7]}').includes("not a JWK"));
  });
});

import { deepEqual, equal, match, ok, throws } from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { newToken, readBearer, tokenProblem, tokenSha256 } from "./bearer.ts";
import { staticTokens } from "./static-tokens.ts";

const reasonOf = (header: string): string => {
  const read = readBearer(header, 100);
  return read.ok ? "ok" : read.refusal.reason;
};

describe("a bearer token", () => {
  test("is one token after the scheme, whose case does not matter", () => {
    const read = readBearer("bEaReR abc-._~+/123==", 100);
    ok(read.ok);
    equal(read.token, "abc-._~+/123==");
    equal(read.sha256, createHash("sha256").update("abc-._~+/123==").digest("hex"));
  });

  test("may follow the word token, as clients of GitHub's API write it", () => {
    const read = readBearer("token abc", 100);
    equal(read.ok && read.token, "abc");
  });

  test("is refused in every other form", () => {
    deepEqual(["Basic YTpi", "", "Bearerabc", "tokens abc", "Bearer"].map(reasonOf), [
      "scheme-unsupported",
      "scheme-unsupported",
      "scheme-unsupported",
      "scheme-unsupported",
      "token-malformed",
    ]);
    for (const header of ["Bearer ", "Bearer  a", "Bearer a b", "Bearer a,b", "Bearer ä", "Bearer a\n", "Bearer =a"])
      equal(reasonOf(header), "token-malformed", JSON.stringify(header));
    equal(reasonOf(`Bearer ${"a".repeat(100)}`), "ok");
    equal(reasonOf(`Bearer ${"a".repeat(101)}`), "token-malformed");
  });

  test("is long and random when Millrace generates it", () => {
    const [one, other] = [newToken(), newToken()];
    match(one, /^millrace_[\w-]{43}$/);
    ok(one !== other);
    equal(tokenProblem(one, 100), undefined);
  });

  test("from a file is refused if it could be guessed or could not be sent", () => {
    match(tokenProblem("hunter2", 100) ?? "", /at least 24/);
    match(tokenProblem("a".repeat(101), 100) ?? "", /at most 100/);
    match(tokenProblem("one two three four five six", 100) ?? "", /one word/);
  });
});

describe("tokens from the configuration", () => {
  const secret = newToken();
  const ci = { name: "ci", tenant: "acme", roles: ["member"], sha256: tokenSha256(secret) } as const;

  test("are found by their hash only", () => {
    const known = staticTokens([ci]);
    const found = known(tokenSha256(secret));
    ok(found?.ok);
    deepEqual([found.principal.name, found.principal.tenant, found.principal.proof], ["ci", "acme", "token"]);
    equal(known(tokenSha256(`${secret}x`)), undefined);
    equal(known(""), undefined);
  });

  test("belong to one principal each", () => {
    throws(
      () => staticTokens([ci, { ...ci, name: "also-ci" }]),
      (error) => isFault(error, "invalid") && !error.message.includes(ci.sha256),
    );
  });
});

import { equal, match, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { createKey, signerOf, type Signer } from "./signing.ts";
import { Trust } from "./trust.ts";

const [one, two, stranger] = [createKey(), createKey(), createKey()];
const [first, second, other] = [one, two, stranger].map(({ privatePem }) => signerOf(privatePem)) as [
  Signer,
  Signer,
  Signer,
];
const both = [one.publicPem, two.publicPem];
const list = (by: Signer, version: number, keys: readonly string[], revoked: readonly string[] = []) =>
  by.sign("trust", JSON.stringify({ format: 1, version, keys, revoked }));
const fresh = (): Trust => new Trust({ version: 0, keys: [one.publicPem], revoked: [] });

describe("the keys that a machine trusts, DEPLOY-4", () => {
  test("a new key counts from the list on that an old one signed", () => {
    const trust = fresh();
    throws(() => trust.open(second.sign("goal", "{}"), "goal"), /not trusted/);
    equal(trust.take(list(first, 1, both)), undefined);
    equal(trust.open(second.sign("goal", "{}"), "goal"), "{}");
    equal(trust.open(first.sign("goal", "{}"), "goal"), "{}");
  });

  test("KY2: a revoked key counts no more, also after the machine has started again", () => {
    const trust = fresh();
    trust.take(list(first, 1, both));
    equal(trust.take(list(second, 2, [two.publicPem], [first.keyId])), undefined);
    for (const each of [trust, new Trust(trust.kept)]) {
      throws(() => each.open(first.sign("goal", "{}"), "goal"), /revoked/);
      throws(() => each.take(list(first, 3, both)), /revoked/);
    }
    match(trust.take(list(second, 3, both)) ?? "", /takes back a revocation/);
  });

  test("a machine that was away takes the lists that it missed, in order", () => {
    const trust = fresh();
    const missed = [list(first, 1, both), list(second, 2, [two.publicPem], [first.keyId])];
    for (const each of missed) equal(trust.take(each), undefined);
    equal(trust.kept.version, 2);
  });

  const refused: readonly [string, () => string | undefined, RegExp][] = [
    ["an old list again", () => (fresh().take(list(first, 1, both)), twice()), /not newer/],
    ["a list by a key that it revokes", () => fresh().take(list(first, 1, [two.publicPem], [first.keyId])), /revokes/],
    ["a list without keys", () => fresh().take(list(first, 1, [])), /malformed/],
  ];
  const twice = (): string | undefined => {
    const trust = fresh();
    trust.take(list(first, 1, both));
    return trust.take(list(first, 1, both));
  };
  for (const [name, take, why] of refused) test(`KY1: ${name} is refused`, () => match(take() ?? "", why));

  test("KY1: a list that a stranger signed, or that was signed as something else, is refused", () => {
    throws(() => fresh().take(list(other, 1, [stranger.publicPem])), /not trusted/);
    const asGoal = first.sign("goal", JSON.stringify({ format: 1, version: 1, keys: both, revoked: [] }));
    throws(() => fresh().take(asGoal), /signed as a goal/);
    throws(() => fresh().take({ ...asGoal, purpose: "trust" }), /signature is wrong/);
  });
});

import { deepEqual, equal, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { createKey, keyIdOf, signerOf } from "#doors/deploy/signing/signing.ts";
import { Trust } from "#doors/deploy/signing/trust.ts";
import { KeyBook } from "./key-book.ts";

const first = signerOf(createKey().privatePem);

function books() {
  const records = watchedRecords(
    memoryRecords(() => clock.monotonicMs()),
    clock,
  );
  const vault = new Map<string, ReturnType<typeof signerOf>>();
  const named = (name: string) => {
    const known = vault.get(name) ?? signerOf(createKey().privatePem);
    vault.set(name, known);
    return Promise.resolve(known);
  };
  return () => new KeyBook({ records, clock, first: () => Promise.resolve(first), signerOf: named });
}

describe("the cluster's signing keys, DEPLOY-4", () => {
  test("a cluster begins with one key, and signs no list with it before there is a second", async () => {
    const book = books()();
    equal((await book.signer()).keyId, first.keyId);
    deepEqual(await book.trusted(), { version: 0, keys: [first.publicPem], revoked: [] });
    deepEqual(await book.listsAfter(0), []);
  });

  test("KB2: a machine that knows the first key follows every list to the newest", async () => {
    const book = books()();
    await book.rotate("ada");
    await book.rotate("ada");
    await book.revoke(first.keyId, "ada");
    const trust = new Trust({ version: 0, keys: [first.publicPem], revoked: [] });
    for (const list of await book.listsAfter(0)) equal(trust.take(list), undefined);
    equal(trust.kept.version, 3);
    deepEqual(await book.trusted(), trust.kept);
    equal(trust.open((await book.signer()).sign("goal", "{}"), "goal"), "{}");
    equal((await book.listsAfter(2)).length, 1);
  });

  test("another node signs with the newest key, too", async () => {
    const open = books();
    const key = await open().rotate("ada");
    equal((await open().signer()).keyId, key);
  });

  test("when the key that signs is revoked, another one takes its place", async () => {
    const book = books()();
    await book.revoke(first.keyId, "ada");
    const { keys, revoked } = await book.trusted();
    deepEqual(revoked, [first.keyId]);
    deepEqual(keys.map(keyIdOf), [(await book.signer()).keyId]);
    await rejects(book.revoke(first.keyId, "ada"), { code: "not-found" });
  });

  test("KB1: of two nodes that write the next list, one succeeds", async () => {
    const open = books();
    const both = await Promise.allSettled([open().rotate("ada"), open().rotate("bob")]);
    equal(both.filter(({ status }) => status === "fulfilled").length, 1);
  });
});

import { deepEqual, equal, notEqual } from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import type { EntryKey } from "#blobs/action-index.ts";
import { keyFromPlain, keyWords } from "./key.ts";
import { KnownNames, wordOf } from "./known-names.ts";

const filed = ({ tenant, space, name }: EntryKey): string =>
  hash("sha256", `${tenant.length} ${space.length} ${tenant}${space}${name}`);

const found = (names: KnownNames, key: EntryKey): string =>
  Buffer.copyBytesFrom(names.words, wordOf(names.placeOf(key)), keyWords).toString("hex");

const named = (name: string) => ({
  space: "ac",
  name,
  entry: { digest: "", version: 1, principal: "ada", atMs: 1 },
});

test("a name keeps its hash, whatever other names take its place", () => {
  const names = new KnownNames();
  // The same beginning, so that all compete for the same four places.
  const digests = Array.from({ length: 9 }, (_, i) => `${`abcdef01${i}`.padEnd(64, "0")}/142`);
  const keys = [...digests, "head", "", "ABC/1", `${"0".repeat(64)}/007`].flatMap((name) =>
    ["ac/sha256", "ac/sha256/main"].flatMap((space) =>
      ["mill", "mills"].map((tenant): EntryKey => ({ tenant, space, name })),
    ),
  );
  for (const round of [1, 2, 3]) for (const key of keys) equal(found(names, key), filed(key), `round ${round}`);
  for (const key of keys) equal(names.hashOf(key).toString("hex"), filed(key));
});

test("a name that is a digest is found by its words too", () => {
  const names = new KnownNames();
  const words = new Uint32Array(keyWords);
  for (const size of [1, 142, 999_999_999]) {
    const name = `${"0123456789abcdef".repeat(4)}/${size}`;
    equal(keyFromPlain(words, name), size);
    const owner = { tenant: "mill", space: "ac/sha256" };
    const place = names.placeOfHash(owner, words, size);
    equal(names.placeOf({ ...owner, name }), place);
    names.keep(place, { segment: 1, offset: 8 }, named(name)); // until then the place is free
    notEqual(names.placeOf({ ...owner, space: "other", name }), place);
  }
});

test("a record's content is known by its position, until another name takes the place", () => {
  const names = new KnownNames();
  const owner = { tenant: "mill", space: "ac" };
  const nameOf = (i: number): string => `${`abcdef01${i}`.padEnd(64, "0")}/142`;
  const place = names.placeOf({ ...owner, name: nameOf(0) });
  names.keep(place, { segment: 3, offset: 64 }, named(nameOf(0)));
  deepEqual(names.named(place, 3, 64), named(nameOf(0)));
  equal(names.named(place, 3, 72), undefined);
  equal(names.named(place, 4, 64), undefined);
  for (let i = 1; i < 9; i += 1) {
    const other = names.placeOf({ ...owner, name: nameOf(i) });
    equal(names.named(other, 3, 64), undefined, "nothing is left of the previous name");
    names.keep(other, { segment: i, offset: 8 }, named(nameOf(i)));
  }
  equal(names.named(names.placeOf({ ...owner, name: nameOf(0) }), 3, 64), undefined);
});

test("only canonical SHA-256 digests are recognised as digests", () => {
  const words = new Uint32Array(keyWords);
  const hex = "0123456789abcdef".repeat(4);
  equal(keyFromPlain(words, `${hex}/42`), 42);
  equal(Buffer.copyBytesFrom(words).toString("hex"), hex);
  equal(keyFromPlain(words, `${hex}/0`), 0);
  for (const other of [
    "",
    hex,
    `${hex}/`,
    `${hex}/042`,
    `${hex}/4x`,
    `${hex}/-1`,
    `${hex}/1234567890`,
    `blake3:${hex}/42`,
    `${hex.toUpperCase()}/42`,
    `${hex.slice(1)}g/42`,
    `${hex.slice(1)}\u0130/42`,
    `${hex.slice(1)}\u00b0/42`,
    `${hex.slice(1)}/423`,
  ])
    equal(keyFromPlain(words, other), -1, other);
});

import { deepEqual, equal, ok } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { keyFromBytes, keyFromHex, keyWords, type Key } from "./key.ts";
import { entriesPerChunk, entryWords, flags, groupMax, noEntry, Table } from "./table.ts";

/** Few different first words, so that keys collide. */
const keyOf = (name: number): Key => Uint32Array.of(name % 5, 0, 0, 0, 0, 0, 0, name);

type Step = { readonly remove: boolean; readonly name: number };
const steps: fc.Arbitrary<Step[]> = fc.array(fc.record({ remove: fc.boolean(), name: fc.nat(40) }), {
  maxLength: 300,
});

test("a table finds what was added and not removed, also when keys collide", () => {
  fc.assert(
    fc.property(steps, (play) => {
      const table = new Table();
      const model = new Map<number, number>();
      for (const { remove, name } of play) {
        const entry = table.find(keyOf(name), 0);
        equal(entry, model.get(name) ?? noEntry);
        if (remove && entry !== noEntry) {
          table.remove(entry);
          model.delete(name);
        } else if (!remove && entry === noEntry) model.set(name, table.add(keyOf(name), 0));
        equal(table.count, model.size);
      }
      for (const [name, entry] of model) deepEqual([...table.key(entry)], [...keyOf(name)]);
    }),
  );
});

test("a group lookup equals single lookups", () => {
  const names = fc.array(fc.nat(300), { maxLength: groupMax });
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(300)), names, fc.nat(5), (there, asked, before) => {
      const table = new Table();
      for (const name of there) table.add(keyOf(name), 0);
      const keys = new Uint32Array((before + asked.length) * keyWords);
      asked.forEach((name, i) => keys.set(keyOf(name), (before + i) * keyWords));
      for (const fn of [0, 1]) {
        const entries = new Int32Array(groupMax);
        table.findGroup(keys, before, asked.length, fn, entries);
        deepEqual(
          [...entries.subarray(0, asked.length)],
          asked.map((name) => table.find(keyOf(name), fn)),
        );
      }
    }),
  );
});

test("it grows, and a table loaded from its chunks is the same", () => {
  const table = new Table();
  const key = new Uint32Array(keyWords);
  const word = (i: number): number => Math.imul(i, 0x9e3779b1) >>> 0;
  for (let i = 0; i < 100_000; i += 1) {
    key.fill(i);
    key[0] = word(i);
    const entry = table.add(key, 1);
    table.setPacked(entry, i % 65_536, 8 * (i % 8_000));
    table.setPlace(entry, i, i + 1);
  }
  for (let i = 0; i < 100_000; i += 7) {
    key.fill(i);
    key[0] = word(i);
    table.remove(table.find(key, 1));
  }
  const again = new Table();
  again.load(
    Array.from({ length: table.chunkCount }, (_, i) =>
      table.copyChunk(i, new Uint32Array(entriesPerChunk * entryWords)),
    ),
  );
  equal(again.count, table.count);
  for (let i = 0; i < 100_000; i += 1) {
    key.fill(i);
    key[0] = word(i);
    const entry = again.find(key, 1);
    equal(entry === noEntry, i % 7 === 0);
    if (entry === noEntry) continue;
    equal(again.sizeOf(entry), i % 65_536);
    equal(again.recordBytes(entry), 8 * (i % 8_000));
    equal(again.offset(entry), i + 1);
  }
  ok(table.sizeBytes / 100_000 < 100, `${table.sizeBytes / 100_000} bytes an entry`);
});

test("the function is part of the key, and sizes may be beyond 4 GiB", () => {
  const table = new Table();
  const entry = table.add(keyOf(1), 0);
  equal(table.find(keyOf(1), 1), noEntry);
  table.setFile(entry, 10 * 2 ** 40 + 5, 7_000);
  equal(table.sizeOf(entry), 10 * 2 ** 40 + 5);
  equal(table.fileBytes(entry), 7 * 1_024);
  ok(table.has(entry, flags.file));
  table.setPacked(entry, 12, 64);
  equal(table.sizeOf(entry), 12);
  ok(!table.has(entry, flags.file));
});

test("keys from hex and from bytes agree, and differ if hashes differ anywhere", () => {
  const functions = [0, 1, 2, 3, 4] as const;
  const lengths = [32, 32, 20, 48, 64] as const;
  for (const fn of functions) {
    const bytes = Buffer.from(Array.from({ length: lengths[fn] }, (_, i) => i * 3));
    const [hex, raw, other] = [0, 0, 0].map(() => new Uint32Array(keyWords)) as [Key, Key, Key];
    keyFromHex(hex, fn, bytes.toString("hex"));
    keyFromBytes(raw, fn, Buffer.concat([Buffer.from("xx"), bytes]), 2);
    deepEqual(hex, raw);
    bytes[lengths[fn] - 1] = 255;
    keyFromBytes(other, fn, bytes, 0);
    ok(!Buffer.from(other.buffer).equals(Buffer.from(raw.buffer)));
  }
});

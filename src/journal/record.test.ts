import { deepEqual, equal, notEqual, throws } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { decodeRecord, encodeRecord, recordHash, type RecordBody, type RecordPosition } from "./record.ts";

const bodies: fc.Arbitrary<RecordBody> = fc.record({
  shard: fc.integer({ min: 0, max: 0xffffffff }),
  epoch: fc.maxSafeNat(),
  seq: fc.maxSafeNat(),
  payload: fc.uint8Array({ maxLength: 300 }),
});
const links = fc.integer({ min: 0, max: 0xffffffff });
const placeOf = ({ shard, seq }: RecordBody, link: number | undefined): RecordPosition => ({
  kind: "batch",
  shard,
  seq,
  link,
});
const isCorrupt = (error: unknown): boolean => isFault(error, "corrupt");

test("J3 a record read from its position contains what was written", () => {
  fc.assert(
    fc.property(bodies, links, (body, link) => {
      const decoded = decodeRecord(encodeRecord(body, link), placeOf(body, link));
      deepEqual(
        { ...decoded, payload: [...decoded.payload] },
        { ...body, payload: [...body.payload], hash: recordHash(body) },
      );
    }),
  );
});

test("J3 any truncation or growth is detected", () => {
  fc.assert(
    fc.property(bodies, links, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (body, link, share) => {
      const record = encodeRecord(body, link);
      throws(() => decodeRecord(record.subarray(0, Math.floor(record.length * share)), placeOf(body, link)), isCorrupt);
      throws(() => decodeRecord(Uint8Array.of(...record, 0), placeOf(body, link)), isCorrupt);
    }),
  );
});

test("J3 any flipped bit is detected, also by a reader that knows no link", () => {
  fc.assert(
    fc.property(bodies, links, fc.nat(), (body, link, pick) => {
      const record = encodeRecord(body, link);
      const bit = pick % (record.length * 8);
      record[bit >> 3] = (record[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      throws(() => decodeRecord(record, placeOf(body, undefined)), isCorrupt);
    }),
    { numRuns: 1000 },
  );
});

test("J3 a valid record at the wrong position is detected", () => {
  const body: RecordBody = { shard: 3, epoch: 2, seq: 9, payload: Uint8Array.of(1, 2, 3) };
  const record = encodeRecord(body, 77);
  for (const wrong of [{ shard: 4 }, { seq: 10 }, { link: 78 }, { kind: "chunk" }] satisfies Partial<RecordPosition>[])
    throws(() => decodeRecord(record, { ...placeOf(body, 77), ...wrong }), isCorrupt);
});

test("the hash covers everything but the link", () => {
  const body: RecordBody = { shard: 3, epoch: 2, seq: 9, payload: Uint8Array.of(1, 2, 3) };
  for (const other of [{ shard: 4 }, { epoch: 3 }, { seq: 10 }, { payload: Uint8Array.of(1, 2) }])
    notEqual(recordHash({ ...body, ...other }), recordHash(body));
  const hashAt = (link: number): number => decodeRecord(encodeRecord(body, link), placeOf(body, link)).hash;
  equal(hashAt(1), hashAt(2));
});

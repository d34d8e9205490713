import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  headerBytes,
  kinds,
  markMoved,
  numberRecord,
  openRecord,
  recordBytes,
  recordLength,
  sealRecord,
  type NewHeader,
} from "./record.ts";

const word = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const headers: fc.Arbitrary<Required<NewHeader>> = fc.record({
  kind: fc.constantFrom(...Object.values(kinds)),
  fn: fc.integer({ min: 0, max: 15 }),
  isZstd: fc.boolean(),
  accessSec: word,
  keepSec: word,
  visible: word,
  movedFrom: fc.option(
    fc.tuple(fc.integer({ min: 1, max: 2 ** 32 - 1 }), word).map(([segment, offset]) => ({ segment, offset })),
    { nil: undefined },
  ),
});
const bodies = fc.uint8Array({ maxLength: 200 });

function sealed(header: NewHeader, body: Uint8Array, sequence: number, at = 0): Buffer {
  const target = Buffer.alloc(at + recordBytes(body.length), 0xff);
  target.set(body, at + headerBytes);
  sealRecord(target, at, header, { bodyBytes: body.length, sequence });
  return target;
}

test("a record is read as it was written, at any offset", () => {
  fc.assert(
    fc.property(headers, bodies, fc.maxSafeNat(), fc.nat(64), (header, body, sequence, at) => {
      const found = openRecord(sealed(header, body, sequence, at), at);
      deepEqual(found, { ...header, bodyBytes: body.length, sequence });
      equal(recordBytes(body.length) % 8, 0);
    }),
  );
});

test("a truncated record, or one with a flipped bit, is not a record", () => {
  fc.assert(
    fc.property(headers, bodies, fc.nat(), fc.nat(), (header, body, bit, cut) => {
      const whole = sealed(header, body, 7);
      equal(openRecord(whole.subarray(0, cut % whole.length), 0), undefined);
      const covered = (headerBytes + body.length) * 8;
      const flipped = Buffer.from(whole);
      const at = bit % covered;
      flipped[at >> 3] = (flipped[at >> 3] ?? 0) ^ (1 << (at & 7));
      equal(openRecord(flipped, 0), undefined);
    }),
  );
});

test("a copied record names its source and its times, and is valid once it is numbered", () => {
  const seconds = fc.tuple(word, word, word);
  const places = fc.record({ segment: fc.integer({ min: 1, max: 2 ** 32 - 1 }), offset: word });
  fc.assert(
    fc.property(headers, bodies, seconds, places, fc.maxSafeNat(), (header, body, times, from, sequence) => {
      const [accessSec, keepSec, visible] = times;
      const copy = sealed(header, body, 7);
      markMoved(copy, 0, { accessSec, keepSec, visible, from });
      equal(numberRecord(copy, 0, sequence), copy.length);
      const { kind, fn, isZstd } = header;
      const bodyBytes = body.length;
      const said = { kind, fn, isZstd, bodyBytes, sequence, accessSec, keepSec, visible };
      deepEqual(openRecord(copy, 0), { ...said, movedFrom: { ...from } });
      equal(recordLength(copy, 0, copy.length), copy.length);
      equal(recordLength(copy, 0, copy.length - 1), 0, "it is incomplete");
    }),
  );
});

import { equal, notEqual, ok } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { digestFunctions, hashBytes, isDigest } from "#base/digest.ts";
import { PlainBlake3 } from "./blake3-plain.ts";
import { createHasher, digestOf, hashHex, hasNativeBlake3 } from "./hashing.ts";

const empty = {
  sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  blake3: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
  sha1: "da39a3ee5e6b4b0d3255bfef95601890afd80709",
} as const;

test("every digest function has its published test value", () => {
  for (const [fn, hex] of Object.entries(empty)) equal(hashHex(fn as keyof typeof empty, new Uint8Array(0)), hex);
  for (const fn of digestFunctions) {
    equal(hashHex(fn, Buffer.from("mill")).length, 2 * hashBytes[fn]);
    ok(isDigest(digestOf(Buffer.from("mill"), fn)));
  }
});

test("hashing piece by piece equals hashing at once", () => {
  const whole = Buffer.from(Array.from({ length: 10_000 }, (_, i) => (i * 7) % 256));
  for (const fn of digestFunctions) {
    const hasher = createHasher(fn);
    for (let at = 0; at < whole.length; at += 999) hasher.update(whole.subarray(at, at + 999));
    equal(hasher.hex(), hashHex(fn, whole), fn);
  }
});

test("our own BLAKE3 agrees with the native one", { skip: !hasNativeBlake3() && "needs blake3: no build" }, () => {
  // The published vectors' input, at the lengths where blocks, chunks and subtrees begin and end.
  const input = Uint8Array.from({ length: 40_000 }, (_, i) => i % 251);
  for (const length of [0, 1, 63, 64, 65, 1_023, 1_024, 1_025, 2_048, 2_049, 3_072, 4_097, 8_193, 31_744, 40_000])
    equal(plain(input.subarray(0, length)), hashHex("blake3", input.subarray(0, length)), `${length} bytes`);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 5_000 }), fc.nat(4_999), (bytes, cut) => {
      const ours = new PlainBlake3().update(bytes.subarray(0, cut)).update(bytes.subarray(cut));
      equal(ours.digest().toString("hex"), hashHex("blake3", bytes));
    }),
    { numRuns: 50 },
  );
  notEqual(plain(Uint8Array.of(1)), plain(Uint8Array.of(2)));
});

const plain = (bytes: Uint8Array): string => new PlainBlake3().update(bytes).digest().toString("hex");

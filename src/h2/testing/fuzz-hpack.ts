/**
 * Header blocks, intact and damaged, for the decoder: it returns fields or throws a ConnectionError, within its limits.
 */
import { assert } from "#base/assert.ts";
import { Random } from "#base/random.ts";
import { ConnectionError } from "#h2/frames/error-codes.ts";
import { HpackDecoder } from "#h2/hpack/hpack-decoder.ts";
import { encodedBytesMax, HpackEncoder, type HeaderPairs } from "#h2/hpack/hpack-encoder.ts";

const names = [
  ":path",
  ":method",
  "content-type",
  "te",
  "x-a",
  "x-b-bin",
  "authorization",
  "grpc-timeout",
  "user-agent",
];

/** Runs one decoder until it fails, or this many blocks were decoded; returns how many. */
export function fuzzHpack(seed: string, blocksMax: number): number {
  const random = new Random(seed);
  const encoder = new HpackEncoder(random.pick([0, 100, 4096]));
  const decoder = new HpackDecoder({ tableBytesMax: 4096, headerListBytesMax: 4_000, headerCountMax: 40 });
  for (let given = 1; given <= blocksMax; given += 1) {
    if (random.chance(0.05)) encoder.peerAllows(random.below(5_000) & ~0xff);
    const pairs: HeaderPairs = Array.from({ length: random.below(12) }, () => [
      random.pick(names),
      "v".repeat(random.below(random.chance(0.1) ? 300 : 30)) + random.below(1_000),
    ]);
    const target = Buffer.alloc(encodedBytesMax(pairs));
    const block = target.subarray(0, encoder.encode(pairs, target, 0));
    const damaged = random.chance(0.05) && block.length > 0;
    if (damaged) block[random.below(block.length)] = random.below(256);
    try {
      const fields = decoder.decode(block, 0, block.length);
      assert(fields.length <= 40, "no more fields than allowed");
      assert(decoder.tableBytes <= 4096, "no larger table than allowed");
      if (damaged) return given; // from here on both ends may have different tables
      assert(decoder.overflowed || fields.length === pairs.length, "what was encoded is decoded");
      assert(
        fields.every((field, at) => field.value === pairs[at]?.[1]),
        "as it was",
      );
      assert(decoder.tableBytes === encoder.tableBytes, "both ends hold the same table");
    } catch (error) {
      if (!(error instanceof ConnectionError) || !damaged) throw error;
      return given;
    }
  }
  return blocksMax;
}

import { deepEqual, equal, ok } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Random } from "#base/random.ts";
import { frameHeaderBytes, frameType, writeFrameHeader } from "#h2/frames/frame.ts";
import { Scissors } from "./scissors.ts";

function frameOf(type: number, payloadBytes: number): Buffer {
  const frame = Buffer.alloc(frameHeaderBytes + payloadBytes, 1);
  writeFrameHeader(frame, 0, payloadBytes, type, 0, 1);
  return frame;
}

/** Where the cut is when the bytes come in pieces of these sizes. */
function cutIn(bytes: Buffer, scissors: Scissors, sizes: readonly number[]): number | undefined {
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const piece = bytes.subarray(at, at + (sizes[turn % sizes.length] ?? 1));
    const cut = scissors.cutAt(piece);
    if (cut !== undefined) return at + cut;
    at += piece.length;
  }
  return undefined;
}

test("the cut is in a DATA frame, mostly at its end, however the bytes are split", () => {
  const before = [frameOf(frameType.settings, 12), frameOf(frameType.settings, 0), frameOf(frameType.headers, 40)];
  const bytes = Buffer.concat([...before, frameOf(frameType.data, 123), frameOf(frameType.headers, 20)]);
  const dataAt = Buffer.concat(before).length + frameHeaderBytes;
  const cuts: number[] = [];
  const property = fc.property(
    fc.integer(),
    fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1 }),
    (seed, sizes) => {
      const cut = cutIn(bytes, new Scissors({ random: new Random(seed), share: 1 }), sizes);
      equal(cut, cutIn(bytes, new Scissors({ random: new Random(seed), share: 1 }), [bytes.length]));
      ok(cut !== undefined && cut > dataAt && cut <= dataAt + 123, String(cut));
      cuts.push(cut);
    },
  );
  fc.assert(property, { numRuns: 200 });
  ok(cuts.filter((cut) => cut === dataAt + 123).length > cuts.length / 2);
});

test("without DATA there is no cut, nor with a share of zero", () => {
  const idle = Buffer.concat([frameOf(frameType.ping, 8), frameOf(frameType.data, 0), frameOf(frameType.headers, 5)]);
  deepEqual(cutIn(idle, new Scissors({ random: new Random(1), share: 1 }), [7]), undefined);
  deepEqual(cutIn(frameOf(frameType.data, 50), new Scissors({ random: new Random(1), share: 0 }), [7]), undefined);
});

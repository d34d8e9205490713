/**
 * FastCDC, version of 2020: cuts bytes at places that depend on their content, so that an insertion moves only the cuts
 * near it. Two implementations cut at the same places if they use the same gear table and masks.
 *
 * Hashes have 64 bits. No mask tests more than the lower 48, and carries only move upwards, so we keep those 48 in two
 * halves of 24 bits. Their sums stay small integers, which is four times as fast as halves of 32 bits.
 */
import { createHash } from "node:crypto";
import { assert } from "#base/assert.ts";

export type FastCdcParams = {
  readonly minBytes: number;
  /** A power of two. */
  readonly avgBytes: number;
  readonly maxBytes: number;
  readonly seed: number;
};

export const fastCdcParams = (avgBytes: number, seed = 0): FastCdcParams => ({
  minBytes: avgBytes / 4,
  avgBytes,
  maxBytes: avgBytes * 4,
  seed,
});

export const fastCdcDefault: FastCdcParams = fastCdcParams(512 * 1024);

/**
 * Level 2 of the paper: a cut is four times less likely before the average size and four times more likely after it.
 */
const normalization = 2;

const halfBits = 24;
const halfMask = 2 ** halfBits - 1;

/**
 * Masks by the logarithm of the average chunk size, beginning with 2^5. Each is bits 32 to 47, then the lower 32 bits.
 */
const firstMaskBits = 5;
const masks: readonly (readonly [high: number, low: number])[] = [
  [0x0000, 0x01804110],
  [0x0000, 0x01803110],
  [0x0000, 0x18035100],
  [0x0018, 0x00035300],
  [0x0190, 0x00353000],
  [0x5900, 0x03530000],
  [0xd900, 0x03530000],
  [0xd901, 0x03530000],
  [0xd903, 0x03530000],
  [0xd903, 0x13530000],
  [0xd90f, 0x03530000],
  [0xd903, 0x03537000],
  [0xd907, 0x03537000],
  [0xd907, 0x07537000],
  [0xd917, 0x07537000],
  [0xd917, 0x47537000],
  [0xd917, 0x67537000],
  [0xd937, 0x67537000],
  [0xd937, 0x77537000],
  [0xd937, 0x77577000],
  [0xdb37, 0x77577000],
];

/** The mask as two halves of 24 bits. */
function maskFor(bits: number): readonly [number, number] {
  const mask = masks[bits - firstMaskBits];
  assert(mask !== undefined, "the average chunk size must be between 128 bytes and 4 MiB");
  return halves(...mask);
}

const halves = (high: number, low: number): readonly [number, number] => [
  ((high & 0xffff) << 8) | (low >>> halfBits),
  low & halfMask,
];

export class FastCdc {
  readonly params: FastCdcParams;
  /** For each byte value: the upper half of its gear, then the lower half. */
  readonly #gears = new Int32Array(512);
  #high = 0;
  #low = 0;
  readonly #rare: readonly [number, number];
  readonly #often: readonly [number, number];

  constructor(params: FastCdcParams = fastCdcDefault) {
    const bits = Math.log2(params.avgBytes);
    assert(Number.isInteger(bits), "the average chunk size must be a power of two");
    this.params = params;
    this.#rare = maskFor(bits + normalization);
    this.#often = maskFor(bits - normalization);
    for (let byte = 0; byte < 256; byte += 1) {
      const md5 = createHash("md5").update(Buffer.alloc(64, byte)).digest();
      this.#gears.set(halves(md5.readInt32BE(0), md5.readInt32BE(4) ^ params.seed), 2 * byte);
    }
  }

  /**
   * Returns the length of the chunk that begins at `start`. The buffer must hold `maxBytes` from there, or the end of
   * the input.
   */
  cut(bytes: Uint8Array, start: number, end: number): number {
    const { minBytes, avgBytes, maxBytes } = this.params;
    const length = Math.min(end - start, maxBytes);
    if (length <= minBytes) return length;
    const center = start + Math.min(avgBytes, length);
    // The published code reads two bytes per step, so it never looks at the odd byte before a boundary.
    const centerEven = start + ((center - start) & ~1);
    const last = start + (length & ~1);
    const first = start + (minBytes & ~1);
    this.#high = 0;
    this.#low = 0;
    const at = this.#look(bytes, { from: first, to: Math.min(centerEven, last), mask: this.#rare });
    if (at >= 0) return at - start;
    const later = this.#look(bytes, { from: Math.max(first, centerEven), to: last, mask: this.#often });
    return later >= 0 ? later - start : length;
  }

  /** Continues the rolling hash. Returns the position where the hash has no bit of the mask set, or -1. */
  #look(bytes: Uint8Array, { from, to, mask }: Looking): number {
    const gears = this.#gears;
    const [maskHigh, maskLow] = mask;
    let high = this.#high;
    let low = this.#low;
    for (let at = from; at < to; at += 1) {
      const gear = (bytes[at] as number) << 1;
      low = (low << 1) + (gears[gear + 1] as number);
      high = ((high << 1) + (gears[gear] as number) + (low >>> halfBits)) & halfMask;
      low &= halfMask;
      if ((low & maskLow) === 0 && (high & maskHigh) === 0) return at;
    }
    this.#high = high;
    this.#low = low;
    return -1;
  }
}

type Looking = { readonly from: number; readonly to: number; readonly mask: readonly [number, number] };

/** Yields the chunks of a stream in order. A chunk is valid until the reader asks for the next one. */
export async function* chunksOf(source: AsyncIterable<Uint8Array>, cdc: FastCdc): AsyncGenerator<Buffer> {
  const { maxBytes } = cdc.params;
  const memory = Buffer.allocUnsafe(2 * maxBytes);
  let start = 0;
  let end = 0;
  const take = (): Buffer => {
    const length = cdc.cut(memory, start, end);
    start += length;
    return memory.subarray(start - length, start);
  };
  for await (const part of source)
    for (let taken = 0; taken < part.length;) {
      if (end === memory.length) {
        memory.copyWithin(0, start, end);
        end -= start;
        start = 0;
      }
      const bytes = part.subarray(taken, taken + memory.length - end);
      memory.set(bytes, end);
      taken += bytes.length;
      end += bytes.length;
      while (end - start >= maxBytes) yield take();
    }
  while (end > start) yield take();
}

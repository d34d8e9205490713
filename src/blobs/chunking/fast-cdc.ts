/**
 * FastCDC in its version of 2020: cuts bytes where their content says so, so that an insertion moves only the cuts near
 * it. The table of gears and the masks are what makes two implementations cut at the same places.
 *
 * Hashes have 64 bits, in two halves here: numbers of 64 bits would be ten times slower.
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

/** Level 2: before the average a cut is four times less likely than it would be, after it four times more. */
const normalization = 2;

/** By the logarithm of the size they stand for, the first for 2^5. */
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

function maskFor(bits: number): readonly [number, number] {
  const mask = masks[bits - firstMaskBits];
  assert(mask !== undefined, "chunks have 128 bytes to 4 MiB on the average");
  return mask;
}

export class FastCdc {
  readonly params: FastCdcParams;
  readonly #gearHigh = new Int32Array(256);
  readonly #gearLow = new Int32Array(256);
  readonly #rare: readonly [number, number];
  readonly #often: readonly [number, number];

  constructor(params: FastCdcParams = fastCdcDefault) {
    const bits = Math.log2(params.avgBytes);
    assert(Number.isInteger(bits), "the average is a power of two");
    this.params = params;
    this.#rare = maskFor(bits + normalization);
    this.#often = maskFor(bits - normalization);
    for (let byte = 0; byte < 256; byte += 1) {
      const md5 = createHash("md5").update(Buffer.alloc(64, byte)).digest();
      this.#gearHigh[byte] = md5.readInt32BE(0);
      this.#gearLow[byte] = md5.readInt32BE(4) ^ params.seed;
    }
  }

  /** The length of the chunk that begins at `start`. All that matters is there: `maxBytes`, or up to the very end. */
  cut(bytes: Uint8Array, start: number, end: number): number {
    const { minBytes, avgBytes, maxBytes } = this.params;
    const length = Math.min(end - start, maxBytes);
    if (length <= minBytes) return length;
    const gearHigh = this.#gearHigh;
    const gearLow = this.#gearLow;
    const center = start + Math.min(avgBytes, length);
    // The published code looks at two bytes in a step, so an odd one at an end is never looked at.
    const centerEven = start + ((center - start) & ~1);
    const last = start + (length & ~1);
    let [maskHigh, maskLow] = this.#rare;
    let high = 0;
    let low = 0;
    for (let at = start + (minBytes & ~1); at < last; at += 1) {
      if (at === centerEven) [maskHigh, maskLow] = this.#often;
      const byte = bytes[at] as number;
      const doubled = low << 1;
      const sum = (doubled >>> 0) + ((gearLow[byte] as number) >>> 0);
      high = ((high << 1) | (low >>> 31)) + (gearHigh[byte] as number) + (sum > 0xffff_ffff ? 1 : 0);
      high |= 0;
      low = sum | 0;
      if ((low & maskLow) === 0 && (high & maskHigh) === 0) return at - start;
    }
    return length;
  }
}

/** The chunks of a stream, in their order. A chunk is the reader's until it asks for the next one. */
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

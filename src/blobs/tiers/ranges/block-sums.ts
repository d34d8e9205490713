/**
 * Checksums of a large blob's blocks, by which a part of it can be checked without the rest: against damage on its way
 * or where it lies, as the digest checks the whole. Pure.
 */
import { crc32 } from "node:zlib";
import { assert } from "#base/assert.ts";

const magic = 0x4d525355;
const headBytes = 16;
const blockBytesMin = 64 * 1024;
/** So that all sums fit into one small object. */
const blocksMax = 250_000;

export const blockBytesFor = (sizeBytes: number): number => {
  let blockBytes = blockBytesMin;
  while (sizeBytes > blockBytes * blocksMax) blockBytes *= 2;
  return blockBytes;
};

/** Takes the bytes of a blob from the first on. */
export class BlockSummer {
  readonly #sizeBytes: number;
  readonly #blockBytes: number;
  readonly #sums: Uint32Array;
  #at = 0;
  #sum = 0;

  constructor(sizeBytes: number) {
    this.#sizeBytes = sizeBytes;
    this.#blockBytes = blockBytesFor(sizeBytes);
    this.#sums = new Uint32Array(Math.ceil(sizeBytes / this.#blockBytes));
  }

  add(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length && this.#at < this.#sizeBytes;) {
      const left = this.#blockBytes - (this.#at % this.#blockBytes);
      const piece = bytes.subarray(from, from + left);
      this.#sum = crc32(piece, this.#sum);
      from += piece.length;
      this.#at += piece.length;
      if (piece.length < left && this.#at < this.#sizeBytes) continue;
      this.#sums[Math.ceil(this.#at / this.#blockBytes) - 1] = this.#sum;
      this.#sum = 0;
    }
  }

  /** Of all bytes: they must have been added. */
  sums(): BlockSums {
    assert(this.#at === this.#sizeBytes, "all bytes of the blob");
    return new BlockSums(this.#sizeBytes, this.#sums);
  }
}

type Span = { readonly from: number; readonly to: number };

export class BlockSums {
  readonly #sizeBytes: number;
  readonly #blockBytes: number;
  readonly #sums: Uint32Array;

  constructor(sizeBytes: number, sums: Uint32Array) {
    this.#sizeBytes = sizeBytes;
    this.#blockBytes = blockBytesFor(sizeBytes);
    this.#sums = sums;
  }

  /** Undefined for bytes that are not as they were written, or of a blob of another size. */
  static decode(encoded: Uint8Array, sizeBytes: number): BlockSums | undefined {
    const view = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.length);
    const count = Math.ceil(sizeBytes / blockBytesFor(sizeBytes));
    if (view.length !== headBytes + 4 * count || view.readUInt32BE(0) !== magic) return undefined;
    if (view.readUIntBE(4, 6) !== sizeBytes || view.readUInt32BE(12) !== ownSum(view)) return undefined;
    return new BlockSums(
      sizeBytes,
      Uint32Array.from({ length: count }, (_, i) => view.readUInt32BE(headBytes + 4 * i)),
    );
  }

  encode(): Uint8Array {
    const view = Buffer.alloc(headBytes + 4 * this.#sums.length);
    view.writeUInt32BE(magic, 0);
    view.writeUIntBE(this.#sizeBytes, 4, 6);
    for (const [i, sum] of this.#sums.entries()) view.writeUInt32BE(sum, headBytes + 4 * i);
    view.writeUInt32BE(ownSum(view), 12);
    return view;
  }

  /** The whole blocks that hold the range. */
  around(offset: number, length: number): Span {
    const from = offset - (offset % this.#blockBytes);
    const to = Math.ceil((offset + length) / this.#blockBytes) * this.#blockBytes;
    return { from, to: Math.min(to, this.#sizeBytes) };
  }

  areRight({ from, to }: Span, bytes: Uint8Array): boolean {
    if (bytes.length !== to - from) return false;
    for (let at = from; at < to; at += this.#blockBytes) {
      const block = bytes.subarray(at - from, at - from + this.#blockBytes);
      if (crc32(block) !== this.#sums[at / this.#blockBytes]) return false;
    }
    return true;
  }
}

/** Of all but itself. */
const ownSum = (view: Buffer): number => crc32(view.subarray(headBytes), crc32(view.subarray(0, 12)));

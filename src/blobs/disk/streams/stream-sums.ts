/**
 * Checksums of what was appended to a stream, piece by piece, in a file beside its bytes: damage is found when it is
 * read. The bytes are synced and the records are not: bytes without one, after a power failure, are read unchecked.
 */
import { crc32 } from "node:zlib";

export const sumBytes = 16;
/** In memory, of a piece without a checksum. */
const unknown = -1;

export type Piece = { readonly from: number; readonly to: number; readonly sum: number | undefined };

export class StreamSums {
  /** Pieces lie behind one another: each begins where the one before ends. */
  readonly #ends: number[] = [];
  readonly #sums: number[] = [];

  /** Records that are not as they were written are left out. */
  static decode(file: Buffer): StreamSums {
    const sums = new StreamSums();
    for (let at = 0; at + sumBytes <= file.length; at += sumBytes) {
      const record = file.subarray(at, at + sumBytes);
      if (record.readUInt16BE(14) !== checkOf(record)) continue;
      sums.add(record.readUIntBE(0, 6), record.readUInt32BE(6), record.readUInt32BE(10));
    }
    return sums;
  }

  get sizeBytes(): number {
    return this.#ends.at(-1) ?? 0;
  }

  /** The record of bytes that were appended at `from`. */
  record(from: number, bytes: Uint8Array): Buffer {
    const record = Buffer.alloc(sumBytes);
    const sum = crc32(bytes);
    record.writeUIntBE(from, 0, 6);
    record.writeUInt32BE(bytes.length, 6);
    record.writeUInt32BE(sum, 10);
    record.writeUInt16BE(checkOf(record), 14);
    this.add(from, bytes.length, sum);
    return record;
  }

  /** A writer that begins again before the end replaces what was there. */
  add(from: number, length: number, sum: number): void {
    while (this.#ends.length > 0 && (this.#ends.at(-2) ?? 0) >= from && this.sizeBytes > from) this.#drop();
    if (this.sizeBytes > from) {
      this.#drop();
      this.#push(from, unknown);
    }
    if (this.sizeBytes < from) this.#push(from, unknown);
    this.#push(from + length, sum);
  }

  /** In order; the last one may be of bytes that have no record. */
  *piecesOf(from: number, to: number): Generator<Piece> {
    let at = from;
    for (let n = this.#firstBehind(from); at < to; n += 1) {
      const end = this.#ends[n];
      if (end === undefined) return yield { from: at, to, sum: undefined };
      const sum = this.#sums[n] ?? unknown;
      const begin = this.#ends[n - 1] ?? 0;
      yield sum === unknown ? { from: at, to: Math.min(end, to), sum: undefined } : { from: begin, to: end, sum };
      at = end;
    }
  }

  #push(end: number, sum: number): void {
    this.#ends.push(end);
    this.#sums.push(sum);
  }

  #drop(): void {
    this.#ends.pop();
    this.#sums.pop();
  }

  /** The first piece that ends behind the offset. */
  #firstBehind(offset: number): number {
    let [low, high] = [0, this.#ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#ends[middle] ?? 0) > offset) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

const checkOf = (record: Buffer): number => crc32(record.subarray(0, 14)) & 0xffff;

/** Very many incompressible bytes derived from a seed, readable from any offset. */
import { createCipheriv, createHash } from "node:crypto";

const blockBytes = 16;
const pieceBytes = 1024 * 1024;
const zeros = Buffer.alloc(pieceBytes);

export class LargeBytes {
  readonly sizeBytes: number;
  readonly #key: Buffer;

  constructor(seed: string, sizeBytes: number) {
    this.sizeBytes = sizeBytes;
    this.#key = createHash("sha256").update(seed).digest().subarray(0, 16);
  }

  /** A stream cipher's output: its counter is the offset. */
  *pieces(from: number, to: number): Generator<Buffer> {
    const block = Math.floor(from / blockBytes);
    const counter = Buffer.alloc(blockBytes);
    counter.writeBigUInt64BE(BigInt(block), 8);
    const cipher = createCipheriv("aes-128-ctr", this.#key, counter);
    let skip = from - block * blockBytes;
    for (let at = from; at < to;) {
      const piece = cipher.update(zeros.subarray(0, Math.min(pieceBytes, to - at + skip))).subarray(skip);
      skip = 0;
      at += piece.length;
      yield piece;
    }
  }

  slice(from: number, to: number): Buffer {
    return Buffer.concat([...this.pieces(from, to)]);
  }

  /** The hash of these ranges, one after the other. Yields to the event loop, so that connections stay alive. */
  async hash(ranges: readonly (readonly [number, number])[] = [[0, this.sizeBytes]]): Promise<string> {
    const hash = createHash("sha256");
    for (const [from, to] of ranges)
      for (const piece of this.pieces(from, to)) {
        hash.update(piece);
        await new Promise(setImmediate);
      }
    return hash.digest("hex");
  }
}

/**
 * Messages out of a stream of bytes: each has a flag (compressed or not) and its length in front.
 *
 * G1 Whatever comes, at most `sizeMax` bytes of a message are kept; a longer one is refused when its length is read,
 *    before any of it.
 */
import { grpcCode, GrpcError } from "./status.ts";

export const prefixBytes = 5;
const none = Buffer.alloc(0);

export type Framed = {
  readonly bytes: Buffer;
  /** What follows, where the message was left in the pieces in which it came. */
  readonly more: readonly Buffer[] | undefined;
  readonly compressed: boolean;
};

/** How much of the stream a message took up: for the peer's window. */
export function sizeOnWire({ bytes, more }: Framed): number {
  let size = prefixBytes + bytes.length;
  if (more) for (const piece of more) size += piece.length;
  return size;
}

/** Where whole messages go. */
export type MessageSink = { take(message: Framed): void };

/** Smaller ones are put together: each would cost more than its bytes, and keep the whole read that it came in. */
const pieceBytesMin = 4 * 1024;
const blockBytes = 16 * 1024;

export class MessageReader {
  readonly #sizeMax: number;
  readonly #keepsPieces: boolean;
  /** Of a message that does not lie in one piece: most do, and need none of what follows. */
  #prefix: Buffer = none;
  #prefixGot = 0;
  #isInside = false;
  #body: Buffer = none;
  #bodyBytes = 0;
  #bodyGot = 0;
  #pieces: Buffer[] | undefined;
  /** Where small pieces are put; the last of the pieces may be its beginning. */
  #block: Buffer = none;
  #blockGot = 0;

  /** `keepsPieces`: what does not come in one piece is handed on as it came. */
  constructor(sizeMax: number, keepsPieces = false) {
    this.#sizeMax = sizeMax;
    this.#keepsPieces = keepsPieces;
  }

  /** Nothing is begun and not ended. */
  get isBetween(): boolean {
    return this.#prefixGot === 0;
  }

  /** Takes in bytes and hands on every message that they complete. Bytes of a message may be views of `chunk`. */
  read(chunk: Buffer, into: MessageSink): void {
    let at = 0;
    while (at < chunk.length) {
      if (!this.#isInside) {
        if (this.#prefixGot === 0 && chunk.length - at >= prefixBytes) {
          const length = this.#checked(chunk, at);
          const from = at + prefixBytes;
          if (chunk.length - from >= length) {
            into.take({ bytes: chunk.subarray(from, from + length), more: undefined, compressed: chunk[at] === 1 });
            at = from + length;
            continue;
          }
        }
        at = this.#readPrefix(chunk, at);
        if (this.#prefixGot < prefixBytes) return;
        this.#begin(this.#checked(this.#prefix, 0));
      }
      at += this.#readBody(chunk, at);
      if (this.#bodyGot < this.#bodyBytes) return;
      into.take(this.#finished());
    }
  }

  #readPrefix(chunk: Buffer, at: number): number {
    if (this.#prefix === none) this.#prefix = Buffer.allocUnsafe(prefixBytes);
    const end = Math.min(chunk.length, at + prefixBytes - this.#prefixGot);
    for (let i = at; i < end; i += 1) {
      this.#prefix[this.#prefixGot] = chunk[i] as number;
      this.#prefixGot += 1;
    }
    return end;
  }

  #begin(length: number): void {
    this.#isInside = true;
    this.#bodyBytes = length;
    this.#bodyGot = 0;
    if (this.#keepsPieces) this.#pieces = [];
    else this.#body = Buffer.allocUnsafe(length);
  }

  #readBody(chunk: Buffer, at: number): number {
    const length = Math.min(chunk.length - at, this.#bodyBytes - this.#bodyGot);
    const pieces = this.#pieces;
    if (!pieces) chunk.copy(this.#body, this.#bodyGot, at, at + length);
    else if (length >= pieceBytesMin) pieces.push(chunk.subarray(at, at + length));
    else this.#keepSmall(pieces, chunk, at, at + length);
    this.#bodyGot += length;
    return length;
  }

  #keepSmall(pieces: Buffer[], chunk: Buffer, from: number, to: number): void {
    for (let at = from; at < to;) {
      if (this.#blockGot === this.#block.length) {
        this.#block = Buffer.allocUnsafe(blockBytes);
        this.#blockGot = 0;
      }
      const length = chunk.copy(this.#block, this.#blockGot, at, to);
      const last = pieces.at(-1);
      const start = this.#block.byteOffset + this.#blockGot;
      const goesOn =
        last?.buffer === this.#block.buffer && last.byteOffset + last.length === start && this.#blockGot > 0;
      const begin = goesOn ? this.#blockGot - last.length : this.#blockGot;
      this.#blockGot += length;
      const piece = this.#block.subarray(begin, this.#blockGot);
      if (goesOn) pieces[pieces.length - 1] = piece;
      else pieces.push(piece);
      at += length;
    }
  }

  #finished(): Framed {
    const compressed = this.#prefix[0] === 1;
    const [first = this.#body, ...more] = this.#pieces ?? [];
    this.#isInside = false;
    this.#body = none;
    this.#pieces = undefined;
    this.#prefixGot = 0;
    return { bytes: first, more: more.length > 0 ? more : undefined, compressed };
  }

  #checked(bytes: Buffer, at: number): number {
    const flag = bytes[at] as number;
    if (flag > 1) throw new GrpcError(grpcCode.internal, `a message begins with the unknown flag ${flag}`);
    const length = bytes.readUInt32BE(at + 1);
    if (length > this.#sizeMax)
      throw new GrpcError(
        grpcCode.resourceExhausted,
        `a message of ${length} bytes is larger than the ${this.#sizeMax} that are taken here`,
      );
    return length;
  }
}

/** Writes the prefix of a message of so many bytes. */
export function writePrefix(into: Uint8Array, at: number, length: number, compressed: boolean): void {
  into[at] = compressed ? 1 : 0;
  into[at + 1] = length >>> 24;
  into[at + 2] = length >>> 16;
  into[at + 3] = length >>> 8;
  into[at + 4] = length;
}

/**
 * Splits a stream of bytes into messages: each is preceded by a flag (compressed or not) and its length.
 *
 * G1 At most `sizeMax` bytes of a message are kept; a longer one is refused when its length is read, before any of its
 * data.
 * G2 Messages are passed on in memory of their own: the incoming bytes are borrowed, and each is copied once.
 */
import { takeBody } from "./body-pool.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";

export const prefixBytes = 5;
const none = Buffer.alloc(0);

export type Framed = {
  readonly bytes: Buffer;
  readonly compressed: boolean;
};

/** How many bytes of the stream a message took up: for the peer's window. */
export const sizeOnWire = ({ bytes }: Framed): number => prefixBytes + bytes.length;

/** Receives the messages. */
export type MessageSink = {
  /** A whole one. */
  take(message: Framed): void;
  /** A message of `length` bytes begins with `first`, which is borrowed. Return true to receive it in parts. */
  beginParts?(first: Buffer, length: number): boolean;
  /** Bytes [at, end) of `chunk`, which is borrowed, continue the message that is received in parts. */
  addPart?(chunk: Buffer, at: number, end: number, last: boolean): void;
};

/** Is told the memory that an incomplete message needs, and throws if that is too much. */
export type Holder = { hold(bytes: number): void };

export class MessageReader {
  readonly #sizeMax: number;
  readonly #holder: Holder | undefined;
  /** For a message that does not arrive in one piece: most do, and need none of what follows. */
  #prefix: Buffer = none;
  #prefixGot = 0;
  #isInside = false;
  #inParts = false;
  #compressed = false;
  #body: Buffer = none;
  #bytes = 0;
  #got = 0;

  constructor(sizeMax: number, holder?: Holder) {
    this.#sizeMax = sizeMax;
    this.#holder = holder;
  }

  /** No message is incomplete. */
  get isBetween(): boolean {
    return this.#prefixGot === 0 && !this.#isInside;
  }

  /** Reads bytes and passes on every message that they complete. */
  read(chunk: Buffer, into: MessageSink): void {
    let at = 0;
    while (at < chunk.length) {
      if (!this.#isInside) {
        at = this.#begin(chunk, at, into);
        if (!this.#isInside) continue;
      }
      const length = Math.min(chunk.length - at, this.#bytes - this.#got);
      const start = at;
      at += length;
      this.#got += length;
      const isWhole = this.#got === this.#bytes;
      if (isWhole) this.#isInside = false;
      if (this.#inParts) {
        into.addPart?.(chunk, start, at, isWhole);
        continue;
      }
      chunk.copy(this.#body, this.#got - length, start, at);
      if (!isWhole) return;
      const bytes = this.#body;
      this.#body = none;
      into.take({ bytes, compressed: this.#compressed });
    }
  }

  /** Reads a prefix, and decides how to read its message; returns where to continue. */
  #begin(chunk: Buffer, at: number, into: MessageSink): number {
    let length: number;
    if (this.#prefixGot === 0 && chunk.length - at >= prefixBytes) {
      length = this.#checked(chunk, at);
      this.#compressed = chunk[at] === 1;
      at += prefixBytes;
    } else {
      at = this.#readPrefix(chunk, at);
      if (this.#prefixGot < prefixBytes) return at;
      this.#prefixGot = 0;
      length = this.#checked(this.#prefix, 0);
      this.#compressed = this.#prefix[0] === 1;
    }
    const end = Math.min(chunk.length, at + length);
    this.#inParts = !this.#compressed && (into.beginParts?.(chunk.subarray(at, end), length) ?? false);
    if (!this.#inParts && end - at === length) {
      into.take({ bytes: copied(chunk, at, end), compressed: this.#compressed });
      return end;
    }
    if (!this.#inParts) {
      this.#holder?.hold(length);
      this.#body = takeBody(length);
    }
    this.#isInside = true;
    this.#bytes = length;
    this.#got = 0;
    return at;
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

function copied(chunk: Buffer, at: number, end: number): Buffer {
  const copy = Buffer.allocUnsafe(end - at);
  chunk.copy(copy, 0, at, end);
  return copy;
}

/** Writes the prefix of a message of this many bytes. */
export function writePrefix(into: Uint8Array, at: number, length: number, compressed: boolean): void {
  into[at] = compressed ? 1 : 0;
  into[at + 1] = length >>> 24;
  into[at + 2] = length >>> 16;
  into[at + 3] = length >>> 8;
  into[at + 4] = length;
}

/**
 * Messages out of a stream of bytes: each has a flag (compressed or not) and its length in front.
 *
 * G1 Whatever comes, at most `sizeMax` bytes of a message are kept; a longer one is refused when its length is read,
 *    before any of it.
 */
import { grpcCode, GrpcError } from "./status.ts";

export const prefixBytes = 5;

export type Framed = {
  readonly bytes: Buffer;
  readonly compressed: boolean;
};

/** How much of the stream a message took up: for the peer's window. */
export const sizeOnWire = ({ bytes }: Framed): number => prefixBytes + bytes.length;

export class MessageReader {
  readonly #sizeMax: number;
  readonly #prefix = Buffer.allocUnsafe(prefixBytes);
  #prefixGot = 0;
  /** The message under way where it does not lie in one piece. */
  #body: Buffer | undefined;
  #bodyGot = 0;

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  /** Nothing is begun and not ended. */
  get isBetween(): boolean {
    return this.#prefixGot === 0;
  }

  /** Takes in bytes and hands on every message that they complete. Bytes of a message may be views of `chunk`. */
  read(chunk: Buffer, take: (message: Framed) => void): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#body === undefined) {
        if (this.#prefixGot === 0 && chunk.length - at >= prefixBytes) {
          const length = this.#checked(chunk, at);
          const from = at + prefixBytes;
          if (chunk.length - from >= length) {
            take({ bytes: chunk.subarray(from, from + length), compressed: chunk[at] === 1 });
            at = from + length;
            continue;
          }
        }
        at = this.#readPrefix(chunk, at);
        if (this.#prefixGot < prefixBytes) return;
        this.#body = Buffer.allocUnsafe(this.#checked(this.#prefix, 0));
        this.#bodyGot = 0;
      }
      at += this.#readBody(this.#body, chunk, at);
      if (this.#bodyGot < this.#body.length) return;
      take(this.#finished(this.#body));
    }
  }

  #readPrefix(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + prefixBytes - this.#prefixGot);
    for (let i = at; i < end; i += 1) {
      this.#prefix[this.#prefixGot] = chunk[i] as number;
      this.#prefixGot += 1;
    }
    return end;
  }

  #readBody(body: Buffer, chunk: Buffer, at: number): number {
    const copied = chunk.copy(body, this.#bodyGot, at);
    this.#bodyGot += copied;
    return copied;
  }

  #finished(bytes: Buffer): Framed {
    const compressed = this.#prefix[0] === 1;
    this.#body = undefined;
    this.#prefixGot = 0;
    return { bytes, compressed };
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

/** Messages as they are sent: with their prefix in front, in one piece of memory. */
import { assert } from "#base/assert.ts";
import { frameHeaderBytes } from "#h2/frames/frame.ts";
import type { Message } from "#wire/message.ts";
import type { Release } from "#h2/connection/output.ts";
import { Writer } from "#wire/writer.ts";
import { prefixBytes, writePrefix } from "./body/message-reader.ts";

const firstBytes = 64 * 1024;
const keptBytesMax = 1024 * 1024;
let scratch = new Writer(Buffer.allocUnsafe(firstBytes));

/**
 * The bytes are valid until the next call: for callers that copy them at once, such as the fast path of a small answer.
 */
export function frameBriefly<T>(type: Message<T>, message: T): Buffer {
  if (scratch.bytes.length > keptBytesMax) scratch = new Writer(Buffer.allocUnsafe(firstBytes));
  scratch.pos = prefixBytes;
  type.write(message, scratch);
  const { bytes, pos } = scratch;
  writePrefix(bytes, 0, pos - prefixBytes, false);
  return bytes.subarray(0, pos);
}

export const frame = <T>(type: Message<T>, message: T): Buffer => Buffer.from(frameBriefly(type, message));

const nothing: readonly Buffer[] = [];

/** What precedes a message: its prefix, and the header of its frame. */
export const laidHeadBytes = prefixBytes + frameHeaderBytes;

/**
 * A message that its handler has encoded itself: bulk data, which must not be copied. The `laidHeadBytes` bytes before
 * `bytes` in its memory are overwritten. The rest may be in `more` pieces, each with space for a frame header before
 * it: pieces of a frame's length that follow each other in memory, with just that space between them, are sent with one
 * write.
 */
export class LaidMessage {
  readonly bytes: Buffer;
  readonly more: readonly Buffer[];
  /** Called when the memory is no longer needed here; until then it must not be changed. */
  readonly release: Release | undefined;

  constructor(bytes: Buffer, release?: Release, more: readonly Buffer[] = nothing) {
    assert(bytes.byteOffset >= laidHeadBytes, "there is room before a message");
    this.bytes = bytes;
    this.more = more;
    this.release = release;
  }

  /** The first piece with the message's prefix in front, in place. */
  framed(): Buffer {
    const { buffer, byteOffset, length } = this.bytes;
    const framed = Buffer.from(buffer, byteOffset - prefixBytes, prefixBytes + length);
    let whole = length;
    for (const piece of this.more) whole += piece.length;
    writePrefix(framed, 0, whole, false);
    return framed;
  }

  /** In one piece, for compression. */
  whole(): Buffer {
    return Buffer.concat([this.framed(), ...this.more]);
  }
}

/**
 * A message that ends with `data`, in memory that its owner wants back: it is sent from where it is, and the handler is
 * asked for its next message only after that. `head` is what precedes the data, such as
 * `readResponseHead.of(data.length)`.
 */
export class LentMessage {
  readonly head: Uint8Array;
  readonly data: Uint8Array;

  constructor(head: Uint8Array, data: Uint8Array) {
    this.head = head;
    this.data = data;
  }

  /** Prefix and head: what is sent before the data. */
  beginning(): Buffer {
    const bytes = Buffer.allocUnsafe(prefixBytes + this.head.length);
    writePrefix(bytes, 0, this.head.length + this.data.length, false);
    bytes.set(this.head, prefixBytes);
    return bytes;
  }

  /** In one piece, for compression. */
  whole(): Buffer {
    return Buffer.concat([this.beginning(), this.data]);
  }
}

/** The answer of a streaming handler that has one message to send, and has it now: sent like a unary call's answer. */
export class OnlyMessage<T> {
  readonly message: T;

  constructor(message: T) {
    this.message = message;
  }
}

/** A message that is encoded already. */
export function frameBytes(bytes: Uint8Array, compressed: boolean): Buffer {
  const framed = Buffer.allocUnsafe(prefixBytes + bytes.length);
  writePrefix(framed, 0, bytes.length, compressed);
  framed.set(bytes, prefixBytes);
  return framed;
}

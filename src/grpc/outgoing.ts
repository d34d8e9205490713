/** A message as it is sent: with its prefix in front, in one piece of memory. */
import { assert } from "#base/assert.ts";
import { frameHeaderBytes } from "#h2/frame.ts";
import type { Message } from "#wire/message.ts";
import type { Release } from "#h2/output.ts";
import { Writer } from "#wire/writer.ts";
import { prefixBytes, writePrefix } from "./message-reader.ts";

const firstBytes = 64 * 1024;
const keptBytesMax = 1024 * 1024;
let scratch = new Writer(Buffer.allocUnsafe(firstBytes));

/**
 * The bytes are lent until the next call: for whoever copies them at once, as the fast path of a small answer does.
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

/** What goes before a message: its own prefix, and the header of the frame that it travels in. */
export const laidHeadBytes = prefixBytes + frameHeaderBytes;

/**
 * A message whose handler has made its bytes itself: bulk data, which nobody wants copied. The `laidHeadBytes` bytes
 * before `bytes` in its memory are overwritten.
 */
export class LaidMessage {
  readonly bytes: Buffer;
  /** Called when the memory is no longer needed here; until then nobody may change it. */
  readonly release: Release | undefined;

  constructor(bytes: Buffer, release?: Release) {
    assert(bytes.byteOffset >= laidHeadBytes, "there is room before a message");
    this.bytes = bytes;
    this.release = release;
  }

  /** With its prefix in front, in place. */
  framed(): Buffer {
    const { buffer, byteOffset, length } = this.bytes;
    const framed = Buffer.from(buffer, byteOffset - prefixBytes, prefixBytes + length);
    writePrefix(framed, 0, length, false);
    return framed;
  }
}

/** A message that is bytes already. */
export function frameBytes(bytes: Uint8Array, compressed: boolean): Buffer {
  const framed = Buffer.allocUnsafe(prefixBytes + bytes.length);
  writePrefix(framed, 0, bytes.length, compressed);
  framed.set(bytes, prefixBytes);
  return framed;
}

/** A message as it is sent: with its prefix in front, in one piece of memory. */
import type { Message } from "#wire/message.ts";
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

/** A message that is bytes already. */
export function frameBytes(bytes: Uint8Array, compressed: boolean): Buffer {
  const framed = Buffer.allocUnsafe(prefixBytes + bytes.length);
  writePrefix(framed, 0, bytes.length, compressed);
  framed.set(bytes, prefixBytes);
  return framed;
}

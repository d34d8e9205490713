/**
 * Messages on a byte stream: four bytes of length, big-endian, and JSON on one line. The `note` of a message is on the
 * lines behind it, as it is: it is JSON itself, and quotes within quotes would be most of the message. Bytes in,
 * messages out.
 */
import { Fault } from "#base/fault.ts";

export const messageBytesMax = 16 * 1024 * 1024;
const lengthBytes = 4;

export function frameOf(message: object & { readonly note?: string | undefined }): Buffer {
  const { note } = message;
  const json =
    note === undefined ? JSON.stringify(message) : `${JSON.stringify({ ...message, note: undefined })}\n${note}`;
  const length = Buffer.byteLength(json);
  if (length > messageBytesMax) throw new Fault("exhausted", "send to launcher", { bytes: length, messageBytesMax });
  const frame = Buffer.allocUnsafe(lengthBytes + length);
  frame.writeUInt32BE(length, 0);
  frame.write(json, lengthBytes, "utf8");
  return frame;
}

export class FrameReader {
  #held: Buffer = Buffer.alloc(0);

  /** The messages that are whole now. A length that cannot be is a Fault: nobody knows where the next one begins. */
  *push(chunk: Buffer): Generator<unknown> {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    let at = 0;
    try {
      while (this.#held.length - at >= lengthBytes) {
        const length = this.#held.readUInt32BE(at);
        if (length > messageBytesMax) throw new Fault("invalid", "read frame", { bytes: length, messageBytesMax });
        if (this.#held.length - at - lengthBytes < length) return;
        const text = this.#held.toString("utf8", at + lengthBytes, at + lengthBytes + length);
        at += lengthBytes + length;
        yield parsed(text);
      }
    } finally {
      this.#held = this.#held.subarray(at);
    }
  }
}

function parsed(text: string): unknown {
  const end = text.indexOf("\n");
  try {
    if (end < 0) return JSON.parse(text);
    return Object.assign(JSON.parse(text.slice(0, end)) as object, { note: text.slice(end + 1) });
  } catch (cause) {
    throw new Fault("invalid", "read frame", { why: "no JSON" }, cause);
  }
}

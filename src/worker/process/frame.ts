/**
 * Messages on a byte stream: four bytes of length, big-endian, and JSON on one line. The `note` of a message follows on
 * further lines, unchanged: it is JSON itself, and escaping it would double the message. Pure.
 */
import { Fault } from "#base/fault.ts";

export const messageBytesMax = 16 * 1024 * 1024;
const lengthBytes = 4;
const noLength = "\0".repeat(lengthBytes);

export function frameOf(message: object & { readonly note?: string | undefined }): Buffer {
  const { note } = message;
  const json =
    note === undefined ? JSON.stringify(message) : `${JSON.stringify({ ...message, note: undefined })}\n${note}`;
  const frame = Buffer.from(`${noLength}${json}`);
  const length = frame.length - lengthBytes;
  if (length > messageBytesMax) throw new Fault("exhausted", "send to launcher", { bytes: length, messageBytesMax });
  frame.writeUInt32BE(length, 0);
  return frame;
}

export class FrameReader {
  #held: Buffer = Buffer.alloc(0);

  /**
   * Yields the messages that are complete now; the chunk may be reused afterwards. An impossible length is a Fault,
   * because the start of the next message is unknown.
   */
  *push(chunk: Buffer): Generator<unknown> {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    let at = 0;
    try {
      while (bytes.length - at >= lengthBytes) {
        const length = bytes.readUInt32BE(at);
        if (length > messageBytesMax) throw new Fault("invalid", "read frame", { bytes: length, messageBytesMax });
        const end = at + lengthBytes + length;
        if (bytes.length < end) return;
        const text = bytes.toString("utf8", at + lengthBytes, end);
        at = end;
        yield parsed(text);
      }
    } finally {
      const rest = bytes.subarray(at);
      this.#held = bytes === chunk ? Buffer.from(rest) : rest;
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

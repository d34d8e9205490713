/**
 * Frames on a byte stream: `length (4) kind (1) id (4) JSON`, big-endian; the length counts what follows it. Pure:
 * bytes in, frames out. An impossible length or kind is a Fault "invalid", and the stream is lost: the start of the
 * next frame is unknown.
 */
import { Fault } from "#base/fault.ts";

export const protocolVersion = 1;

const kinds = [
  "hello", // the first frame of both sides
  "call", // id, method and body
  "answer", // the one answer to a call
  "fault", // the call failed
  "cancel", // the caller no longer wants the answer
  "item", // one message of a stream
  "credit", // this many more messages may be sent
  "end", // end of a stream
  "ping",
  "pong",
  "goodbye", // why the connection is about to be closed
] as const;

export type FrameKind = (typeof kinds)[number];
export type Frame = { readonly kind: FrameKind; readonly id: number; readonly body: unknown };

const headerBytes = 5; // after the length: kind and id
export const frameBytesMaxDefault = 16 * 1024 * 1024;

export function encodeFrame(kind: FrameKind, id: number, body: unknown, bytesMax = frameBytesMaxDefault): Buffer {
  const json = body === undefined ? "" : JSON.stringify(body);
  const length = headerBytes + Buffer.byteLength(json);
  if (length > bytesMax) throw new Fault("exhausted", "encode frame", { kind, bytes: length, bytesMax });
  const frame = Buffer.allocUnsafe(4 + length);
  frame.writeUInt32BE(length, 0);
  frame.writeUInt8(kinds.indexOf(kind) + 1, 4);
  frame.writeUInt32BE(id, 5);
  frame.write(json, 4 + headerBytes, "utf8");
  return frame;
}

export class FrameDecoder {
  /** A frame that claims to be longer breaks the stream; may be changed between two frames. */
  bytesMax: number;
  #parts: Buffer[] = [];
  #heldBytes = 0;
  #broken = false;

  constructor(bytesMax = frameBytesMaxDefault) {
    this.bytesMax = bytesMax;
  }

  /** The frames that are complete now. Throws at the first invalid one, and on every call after that. */
  *push(chunk: Uint8Array): Generator<Frame> {
    if (this.#broken) throw new Fault("invalid", "decode frame", { why: "the stream broke before" });
    this.#parts.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    this.#heldBytes += chunk.byteLength;
    try {
      for (;;) {
        const frame = this.#next();
        if (!frame) return;
        yield frame;
      }
    } catch (error) {
      this.#broken = true;
      this.#parts = [];
      throw error;
    }
  }

  #next(): Frame | undefined {
    if (this.#heldBytes < 4) return undefined;
    const length = this.#peek(4).readUInt32BE(0);
    if (length < headerBytes || length > this.bytesMax)
      throw new Fault("invalid", "decode frame", {
        length,
        bytesMax: this.bytesMax,
        why: "not the Millrace protocol?",
      });
    if (this.#heldBytes < 4 + length) return undefined;
    return decode(this.#take(4 + length).subarray(4));
  }

  /** Joins only as many parts as needed: a large frame in many parts is copied once. */
  #peek(bytes: number): Buffer {
    const first = this.#parts[0];
    if (first && first.length >= bytes) return first;
    const joined = Buffer.concat(this.#parts);
    this.#parts = [joined];
    return joined;
  }

  #take(bytes: number): Buffer {
    const front = this.#peek(bytes);
    const rest = front.subarray(bytes);
    if (rest.length > 0) this.#parts[0] = rest;
    else this.#parts.shift();
    this.#heldBytes -= bytes;
    return front.subarray(0, bytes);
  }
}

function decode(frame: Buffer): Frame {
  const kind = kinds[frame.readUInt8(0) - 1];
  if (!kind) throw new Fault("invalid", "decode frame", { kind: frame.readUInt8(0), why: "no such kind of frame" });
  const id = frame.readUInt32BE(1);
  if (frame.length === headerBytes) return { kind, id, body: undefined };
  try {
    return { kind, id, body: JSON.parse(frame.toString("utf8", headerBytes)) };
  } catch (cause) {
    throw new Fault("invalid", "decode frame", { kind, why: "the body is not JSON" }, cause);
  }
}

/**
 * Splits the bytes of a connection into frames. DATA is passed on in the pieces in which it arrives, directly from the
 * read; every other frame is passed on whole, and only a frame that was split by a read is copied. Lengths are checked
 * before anything is buffered, so at most one frame of the allowed size is held here.
 */
import { ConnectionError, errorCode } from "./error-codes.ts";
import { clientPreface, flag, frameHeaderBytes, frameType, readUint31 } from "./frame.ts";

export type FrameSink = {
  /** Once true, nothing more is read. */
  readonly closed: boolean;
  /** Any frame but DATA; its payload is bytes[at, end). */
  frame(type: number, flags: number, streamId: number, bytes: Buffer, at: number, end: number): void;
  dataBegins(flags: number, streamId: number, length: number): void;
  /** The current DATA frame has this many bytes of padding. */
  dataPadding(bytes: number): void;
  /** The next piece of its data; `last` when it is complete. An empty frame has one empty piece. */
  data(bytes: Buffer, at: number, end: number, last: boolean): void;
};

export class FrameReader {
  readonly #sink: FrameSink;
  readonly #frameBytesMax: number;
  #prefaceLeft: number;
  /** A frame, or its nine-byte header, that a read split. */
  #held: Buffer = Buffer.alloc(0);
  #heldBytes = 0;
  #inData = false;
  #padLengthDue = false;
  #dataBytes = 0;
  #dataLeft = 0;
  #padLeft = 0;

  constructor(sink: FrameSink, frameBytesMax: number, expectsPreface: boolean) {
    this.#sink = sink;
    this.#frameBytesMax = frameBytesMax;
    this.#prefaceLeft = expectsPreface ? clientPreface.length : 0;
  }

  /** In the middle of a frame that is not DATA, or of the preface. */
  get isMidFrame(): boolean {
    return this.#heldBytes > 0 || (this.#prefaceLeft > 0 && this.#prefaceLeft < clientPreface.length);
  }

  get prefaceSeen(): boolean {
    return this.#prefaceLeft === 0;
  }

  read(bytes: Buffer): void {
    let at = this.#prefaceLeft > 0 ? this.#preface(bytes) : 0;
    const end = bytes.length;
    while (!this.#sink.closed) {
      if (this.#inData) at = this.#data(bytes, at);
      if (at === end) return;
      if (this.#heldBytes > 0 || end - at < frameHeaderBytes) {
        at = this.#fillHeld(bytes, at);
        continue;
      }
      const length = this.#checkedLength(bytes, at);
      const type = bytes[at + 3]!;
      const flags = bytes[at + 4]!;
      const streamId = readUint31(bytes, at + 5);
      if (type === frameType.data) {
        at += frameHeaderBytes;
        this.#beginData(flags, streamId, length);
        continue;
      }
      if (end - at - frameHeaderBytes < length) {
        at = this.#fillHeld(bytes, at);
        continue;
      }
      at += frameHeaderBytes;
      this.#sink.frame(type, flags, streamId, bytes, at, at + length);
      at += length;
    }
  }

  #preface(bytes: Buffer): number {
    const from = clientPreface.length - this.#prefaceLeft;
    const count = Math.min(this.#prefaceLeft, bytes.length);
    for (let i = 0; i < count; i += 1)
      if (bytes[i] !== clientPreface[from + i])
        throw new ConnectionError(errorCode.protocolError, "the first bytes are not HTTP/2's preface");
    this.#prefaceLeft -= count;
    return count;
  }

  #checkedLength(bytes: Buffer, at: number): number {
    const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
    if (length > this.#frameBytesMax) throw new ConnectionError(errorCode.frameSizeError, `a frame of ${length} bytes`);
    return length;
  }

  /** Copies as much of the split frame as there is; returns where the rest of the read begins. */
  #fillHeld(bytes: Buffer, at: number): number {
    if (this.#heldBytes < frameHeaderBytes) {
      if (this.#held.length < frameHeaderBytes) this.#held = Buffer.allocUnsafe(frameHeaderBytes);
      at = this.#copyToHeld(bytes, at, frameHeaderBytes);
      if (this.#heldBytes < frameHeaderBytes) return at;
    }
    const length = this.#checkedLength(this.#held, 0);
    const type = this.#held[3]!;
    const flags = this.#held[4]!;
    const streamId = readUint31(this.#held, 5);
    if (type === frameType.data) {
      this.#heldBytes = 0;
      this.#beginData(flags, streamId, length);
      return at;
    }
    const whole = frameHeaderBytes + length;
    if (this.#held.length < whole) {
      const larger = Buffer.allocUnsafe(whole);
      this.#held.copy(larger, 0, 0, this.#heldBytes);
      this.#held = larger;
    }
    at = this.#copyToHeld(bytes, at, whole);
    if (this.#heldBytes < whole) return at;
    const held = this.#held;
    this.#held = held.subarray(0, 0);
    this.#heldBytes = 0;
    this.#sink.frame(type, flags, streamId, held, frameHeaderBytes, whole);
    return at;
  }

  #copyToHeld(bytes: Buffer, at: number, wanted: number): number {
    const count = Math.min(wanted - this.#heldBytes, bytes.length - at);
    bytes.copy(this.#held, this.#heldBytes, at, at + count);
    this.#heldBytes += count;
    return at + count;
  }

  #beginData(flags: number, streamId: number, length: number): void {
    const padded = (flags & flag.padded) !== 0;
    if (padded && length === 0) throw new ConnectionError(errorCode.frameSizeError, "padded DATA without a pad length");
    this.#sink.dataBegins(flags, streamId, length);
    this.#inData = true;
    this.#padLengthDue = padded;
    this.#dataBytes = length;
    this.#dataLeft = length;
    this.#padLeft = 0;
  }

  #data(bytes: Buffer, at: number): number {
    if (this.#padLengthDue) {
      if (at === bytes.length) return at;
      const padding = bytes[at]!;
      at += 1;
      if (padding >= this.#dataBytes) throw new ConnectionError(errorCode.protocolError, "more padding than DATA");
      this.#padLengthDue = false;
      this.#padLeft = padding;
      this.#dataLeft -= 1 + padding;
      this.#sink.dataPadding(1 + padding);
      if (this.#dataLeft === 0) this.#sink.data(bytes, at, at, true);
    } else if (this.#dataBytes === 0) {
      this.#inData = false;
      this.#sink.data(bytes, at, at, true);
      return at;
    }
    if (this.#dataLeft > 0) {
      const count = Math.min(this.#dataLeft, bytes.length - at);
      if (count === 0) return at;
      this.#dataLeft -= count;
      // Mark the frame as read before the callback: a handler may close the connection.
      if (this.#dataLeft === 0 && this.#padLeft === 0) this.#inData = false;
      this.#sink.data(bytes, at, at + count, this.#dataLeft === 0);
      at += count;
    }
    if (this.#dataLeft === 0) {
      const skipped = Math.min(this.#padLeft, bytes.length - at);
      this.#padLeft -= skipped;
      at += skipped;
      this.#inData = this.#padLeft > 0;
    }
    return at;
  }
}

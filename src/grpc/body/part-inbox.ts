/**
 * The inbox of a call whose long messages are delivered as several short ones while they arrive (`inParts`,
 * wire/message.ts): a handler begins with what is there, and nothing has to be assembled. The bytes are copied once,
 * out of the socket's memory into memory of this call.
 *
 * P1 A part's bytes stay unchanged until the next one is requested, however long that takes, and whatever happens to
 * the call in the meantime.
 * P2 The peer's window opens by what the handler has processed: the inbox never holds more than one window, plus the
 * unused end of one chunk of memory.
 */
import type { MessageParts } from "#wire/message.ts";
import { prefixBytes, sizeOnWire, type Framed, type MessageSink } from "./message-reader.ts";
import { PartMemory, partMemoryBytes } from "./part-memory.ts";

/** A whole message, not yet decoded, or a part of one, which is decoded already. */
export type Item = Framed & { readonly part?: unknown };
type Waiting = { readonly item: Item; readonly wireBytes: number; readonly memory: PartMemory | undefined };

type Parts = MessageParts<unknown>;

const noBytes = Buffer.alloc(0);
/** Shorter messages get memory of their own, so that many of them may be in progress at once. */
const wholeBytesMax = 4 * 1024;
/** With less free space than this, the next bytes of a long message go into another piece of memory. */
const roomBytesMin = 4 * 1024;

export class PartInbox implements MessageSink {
  readonly #inParts: (first: Buffer, length: number) => Parts | undefined;
  readonly #consume: (bytes: number) => void;
  readonly #waiting: Waiting[] = [];
  /** In use by the handler. */
  #lent: Waiting | undefined;
  /** The message that arrives in parts: what is to be skipped of it, and how much was delivered. */
  #parts: Parts | undefined;
  #skip = 0;
  #reportedBytes = 0;
  /** Its bytes that were not delivered yet are at the end of `#memory`. */
  #memory: PartMemory | undefined;
  #untold = 0;
  /** Bytes that arrived and were not consumed; of those, bytes before the data of a message. */
  #owed = 0;
  #headBytes = 0;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(inParts: (first: Buffer, length: number) => Parts | undefined, consume: (bytes: number) => void) {
    this.#inParts = inParts;
    this.#consume = consume;
  }

  /** From the reader: a whole message. */
  take(item: Framed): void {
    this.#add({ item, wireBytes: sizeOnWire(item), memory: undefined });
  }

  beginParts(first: Buffer, length: number): boolean {
    this.#parts = length > wholeBytesMax ? this.#inParts(first, length) : undefined;
    if (!this.#parts) return false;
    this.#skip = this.#parts.dataAt;
    this.#headBytes = prefixBytes + this.#parts.dataAt;
    this.#reportedBytes = 0;
    return true;
  }

  addPart(chunk: Buffer, at: number, end: number, last: boolean): void {
    const skipped = Math.min(this.#skip, end - at);
    this.#skip -= skipped;
    for (let from = at + skipped; from < end;) {
      const memory = this.#roomFor(end - from);
      const copied = chunk.copy(memory.bytes, memory.used, from, end);
      memory.used += copied;
      this.#untold += copied;
      from += copied;
      if (memory.used === partMemoryBytes) this.#tell(last && from === end);
    }
    if (last && this.#parts) this.#tell(true);
    if (this.#untold > 0) this.#wake?.();
  }

  #roomFor(bytes: number): PartMemory {
    const room = this.#memory ? partMemoryBytes - this.#memory.used : 0;
    if (this.#memory && (room >= bytes || room >= roomBytesMin || this.#untold > 0)) return this.#memory;
    this.#memory?.release();
    return (this.#memory = PartMemory.take());
  }

  /** Makes a part of the bytes that arrived. */
  #tell(last: boolean): void {
    const [parts, memory, bytes] = [this.#parts, this.#memory, this.#untold];
    if (!parts) return;
    const data = memory ? memory.bytes.subarray(memory.used - bytes, memory.used) : noBytes;
    const part = parts.part(data, this.#reportedBytes, last);
    memory?.hold();
    this.#add({
      item: { bytes: noBytes, compressed: false, part },
      wireBytes: this.#headBytes + bytes,
      memory,
    });
    this.#reportedBytes += bytes;
    this.#untold = 0;
    this.#headBytes = 0;
    if (last) this.#parts = undefined;
    if (memory?.used === partMemoryBytes) this.#letGoOfMemory();
  }

  #letGoOfMemory(): void {
    this.#memory?.release();
    this.#memory = undefined;
  }

  #add(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#wake?.();
  }

  /** This many bytes arrived, and what they completed has been added. */
  came(bytes: number): void {
    this.#owed += bytes;
    // A message that is assembled has a limit of its own: it must not wait for the window.
    if (this.#waiting.length === 0 && !this.#lent && !this.#parts) this.#settle(this.#owed);
  }

  #settle(bytes: number): void {
    const settled = Math.min(bytes, this.#owed);
    this.#owed -= settled;
    if (settled > 0) this.#consume(settled);
  }

  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  /** At once: everything that arrived is dropped, except what the handler uses (P1). */
  fail(error: Error): void {
    this.#error ??= error;
    for (const { memory } of this.#waiting.splice(0)) memory?.release();
    this.#parts = undefined;
    this.#untold = 0;
    this.#letGoOfMemory();
    this.#wake?.();
  }

  /** The handler has processed the last part. */
  release(): void {
    const lent = this.#lent;
    if (!lent) return;
    this.#lent = undefined;
    lent.memory?.release();
    this.#settle(lent.wireBytes);
  }

  async next(): Promise<Item | undefined> {
    this.release();
    for (;;) {
      if (this.#error) throw this.#error;
      if (this.#waiting.length === 0 && this.#untold > 0) this.#tell(false);
      const waiting = this.#waiting.shift();
      if (waiting) {
        this.#lent = waiting;
        return waiting.item;
      }
      if (!this.#parts) this.#settle(this.#owed);
      if (this.#memory) this.#letGoOfMemory(); // it is unknown when more will arrive
      if (this.#ended) return undefined;
      await new Promise<void>((wake) => (this.#wake = wake));
      this.#wake = undefined;
    }
  }
}

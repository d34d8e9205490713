/** Reads what event-bytes.ts wrote: for any bytes, a value or a Fault, and never a read beyond their end. */
import { Fault } from "#base/fault.ts";
import { textKinds } from "./event-code.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const hashBytes = 32;

export class ByteReader {
  readonly #bytes: Buffer;
  #pos = 0;

  constructor(payload: Uint8Array) {
    this.#bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  }

  corrupt(why: string): never {
    throw new Fault("corrupt", "decode events", { why, at: this.#pos, sizeBytes: this.#bytes.length });
  }

  end(): void {
    if (this.#pos !== this.#bytes.length) this.corrupt("bytes after the last event");
  }

  byte(): number {
    return this.#bytes[this.#pos++] ?? this.corrupt("cut short");
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (!Number.isSafeInteger(value)) this.corrupt("a number too large");
      if (byte < 0x80) return value;
      if (scale > Number.MAX_SAFE_INTEGER) this.corrupt("a number too long");
    }
  }

  signed(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** How many elements follow; each takes at least one byte. */
  count(): number {
    const count = this.varint();
    return count <= this.#bytes.length - this.#pos ? count : this.corrupt("a count larger than the bytes left");
  }

  list<T>(read: () => T): T[] {
    return Array.from({ length: this.count() }, read);
  }

  one<T>(choices: readonly T[]): T {
    return choices[this.varint()] ?? this.corrupt("no such choice");
  }

  text(): string {
    const head = this.varint();
    const kind = head % 4;
    const part = this.#part((head - kind) / 4);
    switch (kind) {
      case textKinds.ascii:
        return part.toString("latin1");
      case textKinds.hex:
        return part.toString("hex");
      case textKinds.utf16:
        return part.toString("utf16le");
      default:
        return this.#utf8(part);
    }
  }

  digest(): string {
    const size = this.varint();
    return size === 0 ? this.text() : `${this.#part(hashBytes).toString("hex")}/${size - 1}`;
  }

  #part(sizeBytes: number): Buffer {
    if (sizeBytes > this.#bytes.length - this.#pos) this.corrupt("cut short");
    const start = this.#pos;
    this.#pos = start + sizeBytes;
    return this.#bytes.subarray(start, this.#pos);
  }

  #utf8(part: Buffer): string {
    try {
      return utf8.decode(part);
    } catch {
      return this.corrupt("no text");
    }
  }
}

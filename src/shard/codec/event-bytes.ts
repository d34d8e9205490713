/** Writes numbers and texts of the log's second encoding into one buffer that is reused for each batch. */
import { textKinds } from "./event-code.ts";

/** Every shard of a node has a buffer, and most shards are idle. */
const firstBytes = 4 * 1024;
/** A buffer that grew beyond this is released after the batch. */
const keptBytesMax = 512 * 1024;
/** Space for the version and the count before the events. */
const headBytes = 12;
/** Up to this many characters a loop is faster than a call into the runtime. */
const shortTextMax = 48;
const hashLength = 64;
const small = 0x8000_0000;

export class ByteWriter {
  #bytes = Buffer.allocUnsafeSlow(firstBytes);
  /** False when a value could not be written: then the bytes written since are discarded. */
  isSound = true;
  pos = headBytes;

  rewind(pos: number): void {
    this.pos = pos;
    this.isSound = true;
  }

  /**
   * Makes sure that this many bytes can be written. Texts and digests call it themselves, with space for a few numbers.
   */
  reserve(sizeBytes: number): void {
    if (this.pos + sizeBytes > this.#bytes.length) this.#grow(sizeBytes);
  }

  /** A copy of everything written, after version and count; then starts again. */
  take(version: number, count: number): Uint8Array {
    const end = this.pos;
    this.pos = 0;
    this.byte(version);
    this.varint(count);
    const start = headBytes - this.pos;
    this.#bytes.copyWithin(start, 0, this.pos);
    const taken = new Uint8Array(this.#bytes.subarray(start, end));
    if (this.#bytes.length > keptBytesMax) this.#bytes = Buffer.allocUnsafeSlow(firstBytes);
    this.rewind(headBytes);
    return taken;
  }

  byte(value: number): void {
    this.#bytes[this.pos++] = value;
  }

  flag(value: boolean, bit: number): number {
    if (typeof value !== "boolean") this.isSound = false;
    return value ? bit : 0;
  }

  choice(value: string, zero: string, one: string, bit: number): number {
    if (value !== zero && value !== one) this.isSound = false;
    return value === one ? bit : 0;
  }

  /** A non-negative integer. */
  varint(value: number): void {
    const bytes = this.#bytes;
    let left = value;
    if (!(value >= 0 && value < small && Number.isInteger(value))) {
      if (!(Number.isSafeInteger(value) && value >= 0)) {
        this.isSound = false;
        return;
      }
      for (; left >= small; left = Math.floor(left / 128)) bytes[this.pos++] = (left % 128) | 0x80;
    }
    for (; left > 0x7f; left >>>= 7) bytes[this.pos++] = (left & 0x7f) | 0x80;
    bytes[this.pos++] = left;
  }

  signed(value: number): void {
    this.varint(value < 0 ? -2 * value - 1 : 2 * value);
  }

  text(value: string): void {
    if (typeof value !== "string") {
      this.isSound = false;
      return;
    }
    const { length } = value;
    this.reserve(length + 64);
    if (length === hashLength && this.#hash(value)) return;
    if (length > shortTextMax) return this.#longText(value);
    const start = this.pos;
    this.varint(length << 2);
    const bytes = this.#bytes;
    const first = this.pos;
    for (let i = 0; i < length; i += 1) {
      const unit = value.charCodeAt(i);
      if (unit >= 0x80) {
        this.pos = start;
        return this.#longText(value);
      }
      bytes[first + i] = unit;
    }
    this.pos = first + length;
  }

  /** A digest as its size plus one and its hash; any other text as 0 and the text. */
  digest(value: string): void {
    this.reserve(128);
    const start = this.pos;
    const sizeBytes = plainSizeOf(value);
    if (sizeBytes >= 0) {
      this.varint(sizeBytes + 1);
      if (this.#hex(value)) return;
      this.pos = start;
    }
    this.byte(0);
    this.text(value);
  }

  /** 64 hexadecimal digits, which many texts are, take half as many bytes. */
  #hash(value: string): boolean {
    const start = this.pos;
    this.varint(((hashLength / 2) << 2) | textKinds.hex);
    if (this.#hex(value)) return true;
    this.pos = start;
    return false;
  }

  /**
   * Writes the first 64 characters as bytes; false if they are not lower-case hexadecimal digits. Digit by digit: a
   * regular expression that checks them first costs three times as much.
   */
  #hex(value: string): boolean {
    const bytes = this.#bytes;
    const first = this.pos;
    let seen = 0;
    for (let i = 0; i < hashLength / 2; i += 1) {
      const high = value.charCodeAt(2 * i);
      const low = value.charCodeAt(2 * i + 1);
      const byte = ((digitOf[high & 0xff] ?? 0) << 4) | (digitOf[low & 0xff] ?? 0);
      seen |= byte | ((high | low) & 0xff00);
      bytes[first + i] = byte;
    }
    if (seen > 0xff) return false;
    this.pos = first + hashLength / 2;
    return true;
  }

  #longText(value: string): void {
    const sizeBytes = Buffer.byteLength(value, "utf8");
    // A lone surrogate has no UTF-8 form, and every text must be read back exactly.
    if (sizeBytes !== value.length && !value.isWellFormed()) {
      this.reserve(2 * value.length + 64);
      this.varint(value.length * 8 + textKinds.utf16);
      this.pos += this.#bytes.write(value, this.pos, "utf16le");
      return;
    }
    this.reserve(sizeBytes + 64);
    this.varint(sizeBytes * 4 + (sizeBytes === value.length ? textKinds.ascii : textKinds.utf8));
    this.pos += this.#bytes.write(value, this.pos, sizeBytes === value.length ? "latin1" : "utf8");
  }

  #grow(sizeBytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.pos + sizeBytes));
    this.#bytes.copy(larger, 0, 0, this.pos);
    this.#bytes = larger;
  }
}

/** The value of each hexadecimal digit by character code; values above a byte mark other characters. */
const digitOf = new Uint16Array(256).fill(0x100);
for (let value = 0; value < 16; value += 1) digitOf[value.toString(16).charCodeAt(0)] = value;

/** The size at the end of a digest in the usual form; -1 for any other text. */
function plainSizeOf(value: string): number {
  const { length } = value;
  const first = hashLength + 1;
  if (length <= first || length > first + 15 || value.charCodeAt(hashLength) !== 0x2f) return -1;
  if (length > first + 1 && value.charCodeAt(first) === 0x30) return -1;
  let sizeBytes = 0;
  for (let i = first; i < length; i += 1) {
    const digit = value.charCodeAt(i) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return -1;
    sizeBytes = sizeBytes * 10 + digit;
  }
  return sizeBytes;
}

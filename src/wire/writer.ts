/**
 * Writes protobuf's wire format into one growing buffer, for generated code and for the hand-written encoders. Lengths
 * are written after what they measure, which is moved if the length needs more space than was reserved.
 *
 * PB2 Bytes are canonical: fields in the order of their numbers, defaults left out, maps sorted by key, numbers and
 * lengths in as few bytes as they need. Equal messages are equal bytes.
 */
import { Fault } from "#base/fault.ts";

const high = 0x1_0000_0000;
/** Up to this many characters a loop is faster than a call into the runtime; their length fits into one byte. */
const shortTextMax = 24;

export class Writer {
  bytes: Buffer;
  pos: number;

  /** Bytes before `pos` are left alone: space for headers, or other messages. */
  constructor(bytes: Buffer = Buffer.allocUnsafe(512), pos = 0) {
    this.bytes = bytes;
    this.pos = pos;
  }

  /** Makes sure that this many bytes can be written. */
  reserve(size: number): void {
    if (size > this.bytes.length - this.pos) this.#grow(size);
  }

  #grow(size: number): void {
    const larger = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, this.pos + size));
    this.bytes.copy(larger, 0, 0, this.pos);
    this.bytes = larger;
  }

  /**
   * Begins a message, a map's entry or a packed list; returns what `close` needs. Space is reserved for a length like
   * `sizeHint`, which must be passed to `close` again: if it is right, nothing has to be moved.
   */
  open(tag: number, sizeHint = 0): number {
    this.reserve(10);
    this.#tag(tag);
    this.pos += varintSize(sizeHint);
    return this.pos;
  }

  close(start: number, sizeHint = 0): void {
    const size = this.pos - start;
    const lengthAt = start - varintSize(sizeHint);
    const moved = lengthAt + varintSize(size);
    if (moved !== start) {
      this.reserve(5);
      this.bytes.copyWithin(moved, start, this.pos);
    }
    this.pos = lengthAt;
    this.#varint(size);
    this.pos += size;
  }

  string(tag: number, value: string): void {
    const { length } = value;
    if (length > shortTextMax) return this.#longText(tag, value);
    this.reserve(8 + length * 3);
    this.#tag(tag);
    const start = this.pos + 1;
    for (let i = 0; i < length; i += 1) {
      const code = value.charCodeAt(i);
      if (code >= 0x80) {
        const size = this.bytes.write(value, start, "utf8");
        this.bytes[start - 1] = size;
        this.pos = start + size;
        return;
      }
      this.bytes[start + i] = code;
    }
    this.bytes[start - 1] = length;
    this.pos = start + length;
  }

  /** Most text is ASCII, so its length in bytes is assumed to be that in characters until it turns out otherwise. */
  #longText(tag: number, value: string): void {
    this.reserve(10 + value.length * 3);
    this.#tag(tag);
    const start = this.pos + varintSize(value.length);
    const size = this.bytes.write(value, start, "utf8");
    const shift = varintSize(size) - varintSize(value.length);
    if (shift > 0) this.bytes.copyWithin(start + shift, start, start + size);
    this.#varint(size);
    this.pos += size;
  }

  data(tag: number, value: Uint8Array): void {
    this.reserve(10 + value.length);
    this.#tag(tag);
    this.#varint(value.length);
    this.bytes.set(value, this.pos);
    this.pos += value.length;
  }

  bool(tag: number, value: boolean): void {
    this.reserve(6);
    this.#tag(tag);
    this.bytes[this.pos] = value ? 1 : 0;
    this.pos += 1;
  }

  uint32(tag: number, value: number): void {
    this.reserve(15);
    this.#tag(tag);
    this.plainUint32(value);
  }

  int32(tag: number, value: number): void {
    this.reserve(15);
    this.#tag(tag);
    this.plainInt32(value);
  }

  int64(tag: number, value: number): void {
    this.reserve(15);
    this.#tag(tag);
    this.plainInt64(value);
  }

  uint64(tag: number, value: number): void {
    this.reserve(15);
    this.#tag(tag);
    this.plainUint64(value);
  }

  double(tag: number, value: number): void {
    this.reserve(13);
    this.#tag(tag);
    this.plainDouble(value);
  }

  /** Without a tag, as in packed lists. */
  plainBool(value: boolean): void {
    this.reserve(1);
    this.bytes[this.pos] = value ? 1 : 0;
    this.pos += 1;
  }

  plainUint32(value: number): void {
    if (value >>> 0 !== value) throw notANumber(value, "uint32");
    this.reserve(5);
    this.#varint(value);
  }

  plainInt32(value: number): void {
    if ((value | 0) !== value) throw notANumber(value, "int32");
    this.reserve(10);
    if (value < 0) this.#long(value);
    else this.#varint(value);
  }

  plainInt64(value: number): void {
    this.reserve(10);
    if (value >>> 0 === value) return this.#varint(value);
    if (!Number.isSafeInteger(value)) throw notANumber(value, "int64");
    this.#long(value);
  }

  plainUint64(value: number): void {
    this.reserve(10);
    if (value >>> 0 === value) return this.#varint(value);
    if (!Number.isSafeInteger(value) || value < 0) throw notANumber(value, "uint64");
    this.#long(value);
  }

  plainDouble(value: number): void {
    this.reserve(8);
    this.bytes.writeDoubleLE(value, this.pos);
    this.pos += 8;
  }

  /** At most 32 bits. There must be space for it. */
  #varint(value: number): void {
    const { bytes } = this;
    let { pos } = this;
    let left = value;
    while (left > 0x7f) {
      bytes[pos] = (left & 0x7f) | 0x80;
      pos += 1;
      left >>>= 7;
    }
    bytes[pos] = left;
    this.pos = pos + 1;
  }

  #long(value: number): void {
    const { bytes } = this;
    let low = value >>> 0;
    let rest = Math.floor(value / high) >>> 0;
    while (rest !== 0 || low > 0x7f) {
      bytes[this.pos] = (low & 0x7f) | 0x80;
      this.pos += 1;
      low = ((low >>> 7) | (rest << 25)) >>> 0;
      rest >>>= 7;
    }
    bytes[this.pos] = low;
    this.pos += 1;
  }

  #tag(tag: number): void {
    if (tag > 0x7f) return this.#varint(tag);
    this.bytes[this.pos] = tag;
    this.pos += 1;
  }
}

export function varintSize(value: number): number {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5;
}

const notANumber = (value: number, type: string): Fault =>
  new Fault("invalid", "encode protobuf", { why: `not an ${type}`, value });

/** A map's entries in wire order. */
export const sortedEntries = <T>(map: ReadonlyMap<string, T>): readonly (readonly [string, T])[] =>
  map.size < 2 ? [...map] : [...map].sort(([one], [other]) => (one < other ? -1 : 1));

/**
 * Reads protobuf's wire format for generated code and for the hand-written decoders.
 *
 * PB1 For any bytes, reading ends with a message or with a Fault "invalid": it never reads beyond the bytes, never
 * recurses deeper than `depthMax`, and never creates more than `itemsMax` objects.
 */
import { isUtf8 } from "node:buffer";
import { Fault } from "#base/fault.ts";
import { shortText, shortTextMax } from "./short-text.ts";

export type ReadLimits = {
  /** Messages within messages, and groups within groups where they are skipped. */
  readonly depthMax: number;
  /** Messages, elements of lists and entries of maps, all together: two bytes can ask for a hundred. */
  readonly itemsMax: number;
};

export const readLimitsDefault: ReadLimits = { depthMax: 64, itemsMax: 1_000_000 };

/** The value of a bytes field that was not sent. */
export const noBytes: Uint8Array = Buffer.alloc(0);

/** The largest tag. */
const tagMax = 0xffff_ffff;
const high = 0x1_0000_0000;

export class Reader {
  readonly bytes: Buffer;
  readonly #limits: ReadLimits;
  pos = 0;
  #depthLeft: number;
  #itemsLeft: number;
  #highBits = 0;

  constructor(bytes: Uint8Array, limits: ReadLimits = readLimitsDefault) {
    this.bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#limits = limits;
    this.#depthLeft = limits.depthMax;
    this.#itemsLeft = limits.itemsMax;
  }

  /** Starts again at the beginning, for another try at the same bytes. */
  restart(): void {
    this.pos = 0;
    this.#depthLeft = this.#limits.depthMax;
    this.#itemsLeft = this.#limits.itemsMax;
  }

  /** The field's number times 8 plus its wire type. */
  tag(): number {
    const byte = this.bytes[this.pos] as number;
    if (byte < 0x80) {
      if (byte < 8) this.fail("a field without a number");
      this.pos += 1;
      return byte;
    }
    const tag = this.uint64();
    if (tag > tagMax || tag < 8) this.fail("a field with an impossible number");
    return tag;
  }

  /** Where the message that begins here ends; `leave` must follow. */
  enter(): number {
    this.#depthLeft -= 1;
    if (this.#depthLeft < 0) this.fail("messages within messages too deep");
    this.count();
    return this.length() + this.pos;
  }

  leave(end: number): void {
    if (this.pos !== end) this.fail("a field goes beyond its message");
    this.#depthLeft += 1;
  }

  /** Counts objects that take memory out of proportion to their bytes. */
  count(items = 1): void {
    this.#itemsLeft -= items;
    if (this.#itemsLeft < 0) this.fail("too many messages and elements");
  }

  /** The length of what follows, checked to be within the bytes. */
  length(): number {
    const length = this.uint32();
    if (length > this.bytes.length - this.pos) this.fail("a length beyond the end");
    return length;
  }

  string(): string {
    const length = this.length();
    const start = this.pos;
    const end = start + length;
    this.pos = end;
    return (length <= shortTextMax ? shortText(this.bytes, start, length) : undefined) ?? this.#text(start, end);
  }

  #text(start: number, end: number): string {
    const text = this.bytes.toString(undefined, start, end);
    // Invalid UTF-8 is decoded with replacement characters: only if there is one it must be checked.
    if (text.includes("\ufffd") && !isUtf8(this.bytes.subarray(start, end))) this.fail("text that is not UTF-8");
    return text;
  }

  /** A view, not a copy: keeping it keeps all bytes of the message. */
  data(): Buffer {
    const length = this.length();
    const start = this.pos;
    this.pos = start + length;
    return this.bytes.subarray(start, start + length);
  }

  bool(): boolean {
    const byte = this.bytes[this.pos] as number;
    if (byte < 0x80) {
      this.pos += 1;
      return byte !== 0;
    }
    return this.#long() !== 0 || this.#highBits !== 0;
  }

  uint32(): number {
    const byte = this.bytes[this.pos] as number;
    if (byte < 0x80) {
      this.pos += 1;
      return byte;
    }
    const second = this.bytes[this.pos + 1] as number;
    if (second < 0x80) {
      this.pos += 2;
      return (byte & 0x7f) | (second << 7);
    }
    return this.#long();
  }

  int32(): number {
    return this.uint32() | 0;
  }

  /** Refused beyond 2^53: wherever we use an int64, such a number is a mistake or an attack. */
  int64(): number {
    const byte = this.bytes[this.pos] as number;
    if (byte < 0x80) {
      this.pos += 1;
      return byte;
    }
    const low = this.#long();
    return this.#safe((this.#highBits | 0) * high + low);
  }

  uint64(): number {
    const byte = this.bytes[this.pos] as number;
    if (byte < 0x80) {
      this.pos += 1;
      return byte;
    }
    const low = this.#long();
    return this.#safe(this.#highBits * high + low);
  }

  double(): number {
    this.#need(8);
    const value = this.bytes.readDoubleLE(this.pos);
    this.pos += 8;
    return value;
  }

  /** An unknown field, or one with an unexpected type. */
  skip(tag: number): void {
    switch (tag & 7) {
      case 0:
        this.#long();
        return;
      case 1:
        this.#need(8);
        this.pos += 8;
        return;
      case 2: {
        const length = this.length();
        this.pos += length;
        return;
      }
      case 3:
        return this.#skipGroup(tag);
      case 5:
        this.#need(4);
        this.pos += 4;
        return;
      default:
        this.fail("a field of no known type");
    }
  }

  /** Groups are older than proto3 and never ours; still, their ends must match their beginnings. */
  #skipGroup(tag: number): void {
    const open = [tag];
    while (open.length > 0) {
      if (open.length > this.#depthLeft) this.fail("groups within groups too deep");
      if (this.pos >= this.bytes.length) this.fail("a group without an end");
      const next = this.tag();
      if ((next & 7) === 3) open.push(next);
      else if ((next & 7) !== 4) this.skip(next);
      else if (open.pop() !== next - 1) this.fail("a group that ends another");
    }
  }

  /** A varint of any length: its lower 32 bits; the others are left in `#highBits`. */
  #long(): number {
    const { bytes } = this;
    let { pos } = this;
    let low = 0;
    let middle = 0;
    let top = 0;
    for (let i = 0; i < 10; i += 1) {
      if (pos >= bytes.length) this.fail("a number without an end");
      const byte = bytes[pos] as number;
      pos += 1;
      if (i < 4) low |= (byte & 0x7f) << (7 * i);
      else if (i < 8) middle |= (byte & 0x7f) << (7 * (i - 4));
      else top |= (byte & 0x7f) << (7 * (i - 8));
      if (byte < 0x80) {
        this.pos = pos;
        this.#highBits = ((middle >>> 4) | (top << 24)) >>> 0;
        return (low | (middle << 28)) >>> 0;
      }
    }
    return this.fail("a number longer than ten bytes");
  }

  #safe(value: number): number {
    return Number.isSafeInteger(value) ? value : this.fail("a number beyond 2^53");
  }

  #need(size: number): void {
    if (size > this.bytes.length - this.pos) this.fail("a field beyond the end");
  }

  fail(why: string): never {
    throw new Fault("invalid", "decode protobuf", { why, at: this.pos });
  }
}

/**
 * MessagePack as HashiCorp's Go codec writes it: strings and byte strings share the old "raw" family, structs are maps
 * with Go's field names. The newer str8 and bin families are read as well. Any bytes give a value, a Fault, or `Short`
 * if more are needed, within limits on depth and on the number of items.
 */
import { Fault } from "#base/fault.ts";

export type Packed = null | boolean | number | bigint | Uint8Array | readonly Packed[] | PackedMap;
export type PackedMap = ReadonlyMap<string, Packed>;

/** The bytes end before the value does; it needs at least this many in total. */
export class Short extends Error {
  readonly atLeastBytes: number;
  constructor(atLeastBytes: number) {
    super("msgpack: more bytes are needed");
    this.atLeastBytes = atLeastBytes;
  }
}

const depthMax = 12;
const keyBytesMax = 1_024;

export const malformed = (why: string): Fault => new Fault("invalid", "read msgpack", { why });

export class MsgpackReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at: number;
  #itemsLeft: number;

  constructor(bytes: Uint8Array, at = 0, itemsMax = 200_000) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = at;
    this.#itemsLeft = itemsMax;
  }

  /** Where the next value begins. */
  get at(): number {
    return this.#at;
  }

  map(): PackedMap {
    const value = this.value();
    if (!(value instanceof Map)) throw malformed("a map was expected");
    return value;
  }

  value(depth = 0): Packed {
    if (depth > depthMax) throw malformed("nested too deep");
    if ((this.#itemsLeft -= 1) < 0) throw malformed("too many items");
    const tag = this.#uint(1);
    if (tag < 0x80) return tag;
    if (tag < 0x90) return this.#map(tag & 0x0f, depth);
    if (tag < 0xa0) return this.#array(tag & 0x0f, depth);
    if (tag < 0xc0) return this.#raw(tag & 0x1f);
    if (tag >= 0xe0) return tag - 0x100;
    return this.#tagged(tag, depth);
  }

  #tagged(tag: number, depth: number): Packed {
    if (tag >= 0xd4 && tag <= 0xd8) return this.#extension(1 << (tag - 0xd4));
    switch (tag) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc4:
      case 0xd9:
        return this.#raw(this.#uint(1));
      case 0xc5:
      case 0xda:
        return this.#raw(this.#uint(2));
      case 0xc6:
      case 0xdb:
        return this.#raw(this.#uint(4));
      case 0xc7:
        return this.#extension(this.#uint(1));
      case 0xc8:
        return this.#extension(this.#uint(2));
      case 0xc9:
        return this.#extension(this.#uint(4));
      case 0xdc:
        return this.#array(this.#uint(2), depth);
      case 0xdd:
        return this.#array(this.#uint(4), depth);
      case 0xde:
        return this.#map(this.#uint(2), depth);
      case 0xdf:
        return this.#map(this.#uint(4), depth);
      default:
        return this.#number(tag);
    }
  }

  #number(tag: number): number | bigint {
    switch (tag) {
      case 0xca:
        return this.#view.getFloat32(this.#take(4));
      case 0xcb:
        return this.#view.getFloat64(this.#take(8));
      case 0xcc:
        return this.#uint(1);
      case 0xcd:
        return this.#uint(2);
      case 0xce:
        return this.#uint(4);
      case 0xcf:
        return plain(this.#view.getBigUint64(this.#take(8)));
      case 0xd0:
        return this.#view.getInt8(this.#take(1));
      case 0xd1:
        return this.#view.getInt16(this.#take(2));
      case 0xd2:
        return this.#view.getInt32(this.#take(4));
      case 0xd3:
        return plain(this.#view.getBigInt64(this.#take(8)));
      default:
        throw malformed(`no value begins with ${tag}`);
    }
  }

  #uint(size: 1 | 2 | 4): number {
    const at = this.#take(size);
    if (size === 1) return this.#view.getUint8(at);
    return size === 2 ? this.#view.getUint16(at) : this.#view.getUint32(at);
  }

  #raw(length: number): Uint8Array {
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }

  #extension(length: number): Uint8Array {
    this.#take(1);
    return this.#raw(length);
  }

  #array(count: number, depth: number): readonly Packed[] {
    if (count > this.#itemsLeft) throw malformed("too many items");
    const items: Packed[] = [];
    for (let i = 0; i < count; i += 1) items.push(this.value(depth + 1));
    return items;
  }

  #map(count: number, depth: number): PackedMap {
    if (count > this.#itemsLeft) throw malformed("too many items");
    const entries = new Map<string, Packed>();
    for (let i = 0; i < count; i += 1) entries.set(this.#key(depth), this.value(depth + 1));
    return entries;
  }

  #key(depth: number): string {
    const key = this.value(depth + 1);
    if (!(key instanceof Uint8Array) || key.length > keyBytesMax) throw malformed("a key is not a short text");
    return textOf(key);
  }

  #take(length: number): number {
    const at = this.#at;
    if (at + length > this.#bytes.length) throw new Short(at + length);
    this.#at = at + length;
    return at;
  }
}

/** For bytes that must contain the complete value. */
export function whole<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Short) throw malformed("the bytes end too soon");
    throw error;
  }
}

const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

export const textOf = (bytes: Uint8Array): string => decoder.decode(bytes);

function plain(value: bigint): number | bigint {
  const small = Number(value);
  return Number.isSafeInteger(small) ? small : value;
}

/**
 * HPACK encoding (RFC 7541). Fields that are likely to repeat are indexed; fields that change with every message are
 * not, so that the table stays stable and constant blocks (`ConstantHeaders`) keep their encoding of a few bytes.
 */
import { assert } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import { fieldKind, fieldOverheadBytes, kindOfPair, makeField, type HeaderField } from "./header-field.ts";
import { staticCount, staticNames } from "./hpack-static.ts";
import { huffmanEncode, huffmanLength } from "./huffman.ts";

export type HeaderPairs = readonly (readonly [name: string, value: string])[];

/** Secrets: never in a table, so that they cannot be guessed by observing lengths (RFC 7541 section 7.1.3). */
const secretNames: ReadonlySet<string> = new Set(["authorization", "proxy-authorization", "cookie", "set-cookie"]);

/** Different in every message: an entry would evict one that is worth keeping. */
const changingNames: ReadonlySet<string> = new Set([
  "content-length",
  "content-range",
  "date",
  "etag",
  "last-modified",
  "age",
  "grpc-timeout",
  "grpc-message",
  "grpc-status-details-bin",
]);
const indexedValueBytesMax = 256;

let constantsMade = 0;

/** A header block that is sent again and again, the same for all connections. Created once, at start. */
export class ConstantHeaders {
  readonly fields: readonly HeaderField[];
  /** The key under which encoders cache its encoding. */
  readonly id: number;

  constructor(pairs: HeaderPairs) {
    this.fields = pairs.map(([name, value]) => makeField(name, value));
    for (const { name, kind } of this.fields) assert(kind !== fieldKind.malformed, `a field that may be sent: ${name}`);
    this.id = constantsMade;
    constantsMade += 1;
  }
}

export type OutgoingHeaders = HeaderPairs | ConstantHeaders;

/** Throws "invalid" for fields that no peer would accept, before any of them is encoded. */
export function checkSendable(headers: OutgoingHeaders): void {
  if (headers instanceof ConstantHeaders) return;
  for (const [name, value] of headers)
    if (kindOfPair(name, value) === fieldKind.malformed)
      throw new Fault("invalid", "send header", { name: name.slice(0, 100) });
}

/** The upper limit of an encoding: no string takes more than its characters, a length at most 5 bytes, a prefix 1. */
export function encodedBytesMax(headers: OutgoingHeaders): number {
  let bytes = 12; // two table size updates
  if (headers instanceof ConstantHeaders)
    for (const { name, value } of headers.fields) bytes += name.length + value.length + 12;
  else for (const [name, value] of headers) bytes += name.length + value.length + 12;
  return bytes;
}

type Known = { readonly bytes: Uint8Array; readonly insertions: number };

export class HpackEncoder {
  /** Oldest first; `#dropped` of them are gone. Entry n was the n-th insertion. */
  #entries: { readonly name: string; readonly value: string; readonly size: number }[] = [];
  #dropped = 0;
  /** Counts all insertions. */
  #insertions = 0;
  #size = 0;
  #sizeMax: number;
  /** The announced size, and the smallest size since: both must be sent (RFC 7541 section 4.2). */
  #announcedSize = 4096;
  #smallestSize: number;
  readonly #ourSizeMax: number;
  /** Name -> its newest entry, and its entries by value. */
  readonly #byName = new Map<string, { newest: number; readonly values: Map<string, number> }>();
  readonly #known: (Known | undefined)[] = [];

  constructor(tableBytesMax = 4096) {
    this.#ourSizeMax = tableBytesMax;
    this.#sizeMax = Math.min(4096, tableBytesMax);
    this.#smallestSize = this.#sizeMax;
  }

  get tableBytes(): number {
    return this.#size;
  }

  /** The peer's SETTINGS_HEADER_TABLE_SIZE. */
  peerAllows(tableBytes: number): void {
    this.#sizeMax = Math.min(tableBytes, this.#ourSizeMax);
    this.#smallestSize = Math.min(this.#smallestSize, this.#sizeMax);
    this.#evictTo(this.#sizeMax);
  }

  /** Writes the block to target[at...], which has space for `encodedBytesMax`; returns where it ends. */
  encode(headers: OutgoingHeaders, target: Uint8Array, at: number): number {
    if (this.#announcedSize !== this.#sizeMax || this.#smallestSize < this.#sizeMax)
      at = this.#sayTableSize(target, at);
    if (headers instanceof ConstantHeaders) return this.#constant(headers, target, at);
    for (const [name, value] of headers) at = this.#field(name, value, target, at);
    return at;
  }

  #constant(headers: ConstantHeaders, target: Uint8Array, at: number): number {
    const known = this.#known[headers.id];
    if (known !== undefined && known.insertions === this.#insertions) {
      const { bytes } = known;
      for (let i = 0; i < bytes.length; i += 1) target[at + i] = bytes[i]!;
      return at + bytes.length;
    }
    const insertions = this.#insertions;
    const start = at;
    for (const { name, value } of headers.fields) at = this.#field(name, value, target, at);
    // Only an encoding that did not change the table can be repeated. A copy: a Buffer's `slice` would be a view of the
    // output.
    this.#known[headers.id] =
      insertions === this.#insertions ? { bytes: Uint8Array.from(target.subarray(start, at)), insertions } : undefined;
    return at;
  }

  #field(name: string, value: string, target: Uint8Array, at: number): number {
    const secret = secretNames.has(name);
    const fixed = staticNames.get(name);
    const known = this.#byName.get(name);
    if (!secret) {
      const place = fixed === undefined ? -1 : fixed.values.indexOf(value);
      if (fixed !== undefined && place >= 0) return integer(fixed.firstIndex + place, 0x7f, 0x80, target, at);
      const nth = known?.values.get(value);
      if (nth !== undefined) return integer(this.#indexOf(nth), 0x7f, 0x80, target, at);
    }
    const nameIndex = fixed?.firstIndex ?? (known === undefined ? 0 : this.#indexOf(known.newest));
    const size = name.length + value.length + fieldOverheadBytes;
    const worth = !secret && size <= this.#sizeMax && !isChanging(name, value);
    if (secret) at = integer(nameIndex, 0x0f, 0x10, target, at);
    else if (worth) at = integer(nameIndex, 0x3f, 0x40, target, at);
    else at = integer(nameIndex, 0x0f, 0x00, target, at);
    if (nameIndex === 0) at = string(name, target, at);
    at = string(value, target, at);
    if (worth) this.#insert(name, value, size);
    return at;
  }

  #indexOf(nth: number): number {
    return staticCount + this.#insertions - nth;
  }

  #insert(name: string, value: string, size: number): void {
    this.#evictTo(this.#sizeMax - size);
    this.#entries.push({ name, value, size });
    let named = this.#byName.get(name);
    if (named === undefined) {
      named = { newest: 0, values: new Map() };
      this.#byName.set(name, named);
    }
    named.newest = this.#insertions;
    named.values.set(value, this.#insertions);
    this.#insertions += 1;
    this.#size += size;
  }

  /** The oldest are evicted first, so the newest entry of a name is last, and its name is removed with it. */
  #evictTo(size: number): void {
    while (this.#size > size) {
      const oldest = this.#entries[this.#dropped];
      if (oldest === undefined) break;
      const nth = this.#insertions - (this.#entries.length - this.#dropped);
      const named = this.#byName.get(oldest.name);
      if (named?.values.get(oldest.value) === nth) named.values.delete(oldest.value);
      if (named?.newest === nth) this.#byName.delete(oldest.name);
      this.#size -= oldest.size;
      this.#dropped += 1;
      this.#known.length = 0; // their indexes may refer to evicted entries
    }
    if (this.#dropped > 64 && this.#dropped * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#dropped);
      this.#dropped = 0;
    }
  }

  #sayTableSize(target: Uint8Array, at: number): number {
    if (this.#smallestSize < this.#sizeMax) at = integer(this.#smallestSize, 0x1f, 0x20, target, at);
    this.#announcedSize = this.#sizeMax;
    this.#smallestSize = this.#sizeMax;
    return integer(this.#sizeMax, 0x1f, 0x20, target, at);
  }
}

const isChanging = (name: string, value: string): boolean =>
  value.length > indexedValueBytesMax || changingNames.has(name) || (name.endsWith("-bin") && value.length > 32);

function integer(value: number, prefix: number, pattern: number, target: Uint8Array, at: number): number {
  if (value < prefix) {
    target[at] = pattern | value;
    return at + 1;
  }
  target[at] = pattern | prefix;
  at += 1;
  value -= prefix;
  while (value >= 0x80) {
    target[at] = (value & 0x7f) | 0x80;
    at += 1;
    value >>>= 7;
  }
  target[at] = value;
  return at + 1;
}

function string(text: string, target: Uint8Array, at: number): number {
  const packed = huffmanLength(text);
  if (packed < text.length) return huffmanEncode(text, target, integer(packed, 0x7f, 0x80, target, at));
  at = integer(text.length, 0x7f, 0x00, target, at);
  for (let i = 0; i < text.length; i += 1) target[at + i] = text.charCodeAt(i);
  return at + text.length;
}

/**
 * A cache of names that were looked up recently: the hash of each, and what its record says. A name has four possible
 * places; if all are taken, it replaces one.
 *
 * All data for one lookup is contiguous in one array, because lookups mostly wait for memory; a Map keyed by strings,
 * which V8 must first intern, would touch a dozen places.
 */
import type { RecordPosition } from "#blobs/disk/log/record.ts";
import { hash as hashOnce } from "node:crypto";
import type { Entry, EntryKey } from "#blobs/action-index.ts";
import { keyFromPlain, keyWords, wordsOfBytes, type Key } from "./key.ts";

/** What a record of the log says about a name. */
export type Named = { readonly space: string; readonly name: string; readonly entry: Entry };

const setsBits = 13;
const ways = 4;
const places = (1 << setsBits) * ways;

/** A line holds the hash of the whole key, the hash in the name, and the words below. */
const lineWords = 32;
const ownHash = keyWords;
const ownSize = 2 * keyWords;
/** 0: the line is free, or its name is not a digest and is kept beside. */
const space = ownSize + 1;
const segment = ownSize + 2;
const offset = ownSize + 3;

export class KnownNames {
  readonly #lines = new Uint32Array(places * lineWords);
  readonly #named: (Named | undefined)[] = Array.from({ length: places });
  readonly #texts = new Map<number, EntryKey>();
  readonly #spaces = new Spaces();
  readonly #hash: Key = new Uint32Array(keyWords);
  #turn = 0;

  /** The hash of the name at a place begins at `words[wordOf(place)]`. */
  get words(): Uint32Array {
    return this.#lines;
  }

  /** The place of this name; valid until the next lookup. */
  placeOf(key: EntryKey): number {
    const sizeBytes = keyFromPlain(this.#hash, key.name);
    return sizeBytes < 0 ? this.#placeOfText(key) : this.placeOfHash(key, this.#hash, sizeBytes);
  }

  /** The place of the name `<hash>/<size>`, the most common form. */
  placeOfHash(owner: Omit<EntryKey, "name">, hash: Key, sizeBytes: number): number {
    const lines = this.#lines;
    const spaceNumber = this.#spaces.numberOf(owner);
    const first = hash[0] as number;
    const from = (first >>> (32 - setsBits)) * ways;
    for (let place = from; place < from + ways; place += 1) {
      const line = place * lineWords;
      if (lines[line + ownHash] !== first || lines[line + space] !== spaceNumber) continue;
      let differs = (lines[line + ownSize] as number) ^ sizeBytes;
      for (let i = 1; i < keyWords; i += 1) differs |= (lines[line + ownHash + i] as number) ^ (hash[i] as number);
      if (differs === 0) return place;
    }
    const name = `${Buffer.copyBytesFrom(hash).toString("hex")}/${sizeBytes}`;
    const place = this.#take(from, { ...owner, name });
    const line = place * lineWords;
    lines.set(hash, line + ownHash);
    lines[line + ownSize] = sizeBytes;
    lines[line + space] = spaceNumber;
    return place;
  }

  #placeOfText(key: EntryKey): number {
    const from = setOfText(key.name) * ways;
    for (let place = from; place < from + ways; place += 1) {
      const known = this.#texts.get(place);
      if (known?.name === key.name && known.space === key.space && known.tenant === key.tenant) return place;
    }
    const place = this.#take(from, key);
    this.#texts.set(place, key);
    return place;
  }

  /** One of the places from this one on: a free one, else each in turn. */
  #take(from: number, { tenant, space: spaceName, name }: EntryKey): number {
    this.#turn = (this.#turn + 1) % ways;
    let place = from + this.#turn;
    for (let one = from; one < from + ways; one += 1) if (this.#named[one] === undefined) place = one;
    const line = place * lineWords;
    const text = `${tenant.length} ${spaceName.length} ${tenant}${spaceName}${name}`;
    const lines = this.#lines.fill(0, line, line + lineWords);
    wordsOfBytes(lines.subarray(line, line + keyWords), hashOnce("sha256", text, "buffer"), 0, keyWords);
    this.#named[place] = undefined;
    this.#texts.delete(place);
    return place;
  }

  /** The hash alone, in the caller's own memory. */
  hashOf(key: EntryKey): Buffer {
    return Buffer.copyBytesFrom(this.#lines, wordOf(this.placeOf(key)), keyWords);
  }

  /** What the record at this position says, if it is cached. */
  named(place: number, segmentNumber: number, offsetBytes: number): Named | undefined {
    const line = place * lineWords;
    const isThat = this.#lines[line + segment] === segmentNumber && this.#lines[line + offset] === offsetBytes;
    return isThat ? this.#named[place] : undefined;
  }

  keep(place: number, at: RecordPosition, named: Named): void {
    const line = place * lineWords;
    this.#lines[line + segment] = at.segment;
    this.#lines[line + offset] = at.offset;
    this.#named[place] = named;
  }
}

export const wordOf = (place: number): number => place * lineWords;

function setOfText(name: string): number {
  let mixed = name.length;
  for (let i = 0; i < name.length; i += 1) mixed = Math.imul(mixed, 31) + name.charCodeAt(i);
  return Math.imul(mixed, 0x9e3779b1) >>> (32 - setsBits);
}

const spacesMax = 10_000;

/** Numbers for tenants and their spaces, of which there are few; starts over when there are too many. */
class Spaces {
  #numbers = new Map<string, Map<string, number>>();
  #last = 0;
  #count = 0;

  /** Unique, and never 0. */
  numberOf({ tenant, space: name }: Omit<EntryKey, "name">): number {
    return this.#numbers.get(tenant)?.get(name) ?? this.#next(tenant, name);
  }

  #next(tenant: string, name: string): number {
    if (this.#count === spacesMax) {
      this.#numbers = new Map();
      this.#count = 0;
    }
    let ofTenant = this.#numbers.get(tenant);
    if (!ofTenant) this.#numbers.set(tenant, (ofTenant = new Map()));
    this.#count += 1;
    this.#last += 1;
    ofTenant.set(name, this.#last);
    return this.#last;
  }
}

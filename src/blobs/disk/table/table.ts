/**
 * Everything the store holds, in memory: an entry of 64 bytes for each blob and each name, and an open-addressing index
 * of 8 bytes per slot. Typed arrays, so that millions of entries cost the garbage collector nothing. Pure: no I/O, no
 * clock.
 *
 * Entries are numbered. A number belongs to its entry until that is removed, and may be reused afterwards.
 */
import { assert } from "#base/assert.ts";
import { keyWords, type Key } from "./key.ts";

export const entryWords = 16;
const chunkBits = 13;
export const entriesPerChunk = 1 << chunkBits;
const inChunk = entriesPerChunk - 1;
const loadMax = 0.7;
/** How many keys are looked up together. */
export const groupMax = 64;

/** Indices of an entry's words; 0-7 are the key. */
const sizeLow = 8;
/** Bits 0-15: high bits of the size of a file, or the length of a packed record in units of 8; 16-19: function. */
const misc = 9;
const segment = 10;
const offset = 11;
const access = 12;
const keep = 13;
const visible = 14;
/** Packed: position of the bytes in memory, 0 if they are not there. File: its size on disk, in KiB. */
const memory = 15;

export const flags = {
  file: 1 << 20,
  zstd: 1 << 21,
  /** Survives a power failure. */
  durable: 1 << 22,
  /** Must be verified before it is served: the power failed since it was written. */
  suspect: 1 << 23,
  /** Used since access times were recorded last. */
  touched: 1 << 24,
  taken: 1 << 31,
} as const;

export const noEntry = -1;

/** A full chunk is used in place, without a copy: a million entries are 64 MB. */
function asChunk(words: Uint32Array): Uint32Array {
  if (words.length === entriesPerChunk * entryWords) return words;
  const chunk = new Uint32Array(entriesPerChunk * entryWords);
  chunk.set(words);
  return chunk;
}

export class Table {
  #chunks: Uint32Array[] = [];
  /** Pairs: first word of the key, entry number + 1. */
  #slots = new Uint32Array(2 * 1024);
  #mask = 1023;
  /** Entries below this were handed out; the free ones among them are chained through word 0. */
  #end = 0;
  #free = noEntry;
  #count = 0;
  readonly #likely = new Int32Array(groupMax);
  /** Written only so that the engine cannot optimise the prefetching reads away. */
  seen = 0;

  get count(): number {
    return this.#count;
  }

  /** One more than the highest entry number. */
  get end(): number {
    return this.#end;
  }

  get sizeBytes(): number {
    return this.#slots.byteLength + this.#chunks.length * entriesPerChunk * entryWords * 4;
  }

  find(key: Key, fn: number): number {
    return this.findAt(key, 0, fn);
  }

  /** Finds the key that begins at `keys[at]`. */
  findAt(keys: Uint32Array, at: number, fn: number): number {
    const slots = this.#slots;
    const mask = this.#mask;
    const first = keys[at] as number;
    for (let slot = first & mask; ; slot = (slot + 1) & mask) {
      const number = slots[2 * slot + 1] as number;
      if (number === 0) return noEntry;
      if (slots[2 * slot] === first && this.#isAt(number - 1, keys, at, fn)) return number - 1;
    }
  }

  /**
   * Looks up to `groupMax` keys of `keyWords` words each, beginning with the key numbered `from`, and writes their
   * entries or `noEntry`. A slot, and then an entry, is usually not in the CPU's caches. Those of the whole group are
   * touched before the first is needed, so that the cache misses overlap. They stay cached until the next group, so
   * callers should look at the entries before that.
   */
  findGroup(keys: Uint32Array, from: number, count: number, fn: number, entries: Int32Array): void {
    const slots = this.#slots;
    const mask = this.#mask;
    this.#fetchEntries(this.#fetchSlots(keys, from, count));
    for (let i = 0; i < count; i += 1) {
      const at = (from + i) * keyWords;
      const first = keys[at] as number;
      let slot = first & mask;
      let entry = (slots[2 * slot + 1] as number) - 1;
      while (entry !== noEntry && !(slots[2 * slot] === first && this.#isAt(entry, keys, at, fn))) {
        slot = (slot + 1) & mask;
        entry = (slots[2 * slot + 1] as number) - 1;
      }
      entries[i] = entry;
    }
  }

  /** Returns how many of the group are probably there; their entries are in `#likely`. Branchless. */
  #fetchSlots(keys: Uint32Array, from: number, count: number): number {
    const slots = this.#slots;
    const mask = this.#mask;
    const likely = this.#likely;
    for (let i = 0, at = from * keyWords; i < count; i += 1, at += keyWords)
      likely[i] = slots[2 * ((keys[at] as number) & mask) + 1] as number;
    let found = 0;
    for (let i = 0, at = from * keyWords; i < count; i += 1, at += keyWords) {
      const first = keys[at] as number;
      const differs = (slots[2 * (first & mask)] as number) ^ first;
      likely[found] = likely[i] as number;
      found += ((differs | -differs) >>> 31) ^ 1;
    }
    return found;
  }

  #fetchEntries(count: number): void {
    const likely = this.#likely;
    const chunks = this.#chunks;
    let seen = 0;
    for (let i = 0; i < count; i += 1) {
      const entry = (likely[i] as number) - 1;
      const chunk = chunks[entry >>> chunkBits];
      if (!chunk) continue;
      const base = (entry & inChunk) * entryWords;
      seen ^= (chunk[base] as number) ^ (chunk[base + memory] as number);
    }
    this.seen = seen;
  }

  #isAt(entry: number, keys: Uint32Array, at: number, fn: number): boolean {
    const chunk = this.#chunk(entry);
    const base = (entry & inChunk) * entryWords;
    if ((((chunk[base + misc] as number) >>> 16) & 15) !== fn) return false;
    for (let i = 1; i < keyWords; i += 1) if (chunk[base + i] !== keys[at + i]) return false;
    return true;
  }

  /** The key must not be there yet. All other words of the new entry are 0. */
  add(key: Key, fn: number): number {
    if (this.#count + 1 > (this.#mask + 1) * loadMax) this.#grow();
    const entry = this.#allot();
    const chunk = this.#chunk(entry);
    const base = (entry & inChunk) * entryWords;
    chunk.fill(0, base, base + entryWords);
    chunk.set(key, base);
    chunk[base + misc] = (fn << 16) | flags.taken;
    this.#link(key[0] ?? 0, entry);
    this.#count += 1;
    return entry;
  }

  remove(entry: number): void {
    assert(this.isTaken(entry), "the entry exists");
    this.#unlink(entry);
    const chunk = this.#chunk(entry);
    const base = (entry & inChunk) * entryWords;
    chunk.fill(0, base, base + entryWords);
    chunk[base] = this.#free + 1;
    this.#free = entry;
    this.#count -= 1;
  }

  isTaken(entry: number): boolean {
    return (this.#word(entry, misc) & flags.taken) !== 0;
  }

  key(entry: number): Key {
    const base = (entry & inChunk) * entryWords;
    return this.#chunk(entry).subarray(base, base + keyWords);
  }

  /** One word of the key, for scans of many entries. */
  keyWord(entry: number, index: number): number {
    return this.#word(entry, index);
  }

  fn(entry: number): number {
    return (this.#word(entry, misc) >>> 16) & 15;
  }

  has(entry: number, flag: number): boolean {
    return (this.#word(entry, misc) & flag) !== 0;
  }

  setFlag(entry: number, flag: number, on: boolean): void {
    const word = this.#word(entry, misc);
    this.#set(entry, misc, on ? word | flag : word & ~flag);
  }

  sizeOf(entry: number): number {
    const word = this.#word(entry, misc);
    return this.#word(entry, sizeLow) + ((word & flags.file) === 0 ? 0 : (word & 0xffff) * 2 ** 32);
  }

  /** The length of a packed record in its segment. */
  recordBytes(entry: number): number {
    return (this.#word(entry, misc) & 0xffff) * 8;
  }

  setPacked(entry: number, sizeBytes: number, recordBytes: number): void {
    this.#set(entry, sizeLow, sizeBytes);
    const kept = this.#word(entry, misc) & ~0xffff & ~flags.file;
    this.#set(entry, misc, kept | (recordBytes >>> 3));
  }

  setFile(entry: number, sizeBytes: number, diskBytes: number): void {
    this.#set(entry, sizeLow, sizeBytes % 2 ** 32);
    this.#set(entry, misc, (this.#word(entry, misc) & ~0xffff) | Math.floor(sizeBytes / 2 ** 32) | flags.file);
    this.#set(entry, memory, Math.ceil(diskBytes / 1024));
  }

  /** A file's size on disk, rounded up to KiB. */
  fileBytes(entry: number): number {
    return this.#word(entry, memory) * 1024;
  }

  segment(entry: number): number {
    return this.#word(entry, segment);
  }

  offset(entry: number): number {
    return this.#word(entry, offset);
  }

  setPlace(entry: number, segmentNumber: number, offsetBytes: number): void {
    this.#set(entry, segment, segmentNumber);
    this.#set(entry, offset, offsetBytes);
  }

  accessSec(entry: number): number {
    return this.#word(entry, access);
  }

  setAccessSec(entry: number, seconds: number): void {
    this.#set(entry, access, seconds);
  }

  /** Marks the entry as used now; true if the use should be recorded. */
  touch(entry: number, seconds: number, coarseSec: number): boolean {
    const chunk = this.#chunk(entry);
    const base = (entry & inChunk) * entryWords;
    const before = chunk[base + access] ?? 0;
    if (seconds - before < coarseSec) return false;
    chunk[base + access] = seconds;
    const word = chunk[base + misc] ?? 0;
    chunk[base + misc] = word | flags.touched;
    return (word & flags.touched) === 0;
  }

  keepSec(entry: number): number {
    return this.#word(entry, keep);
  }

  setKeepSec(entry: number, seconds: number): void {
    this.#set(entry, keep, seconds);
  }

  visible(entry: number): number {
    return this.#word(entry, visible);
  }

  setVisible(entry: number, bits: number): void {
    this.#set(entry, visible, bits);
  }

  memory(entry: number): number {
    return this.#word(entry, memory);
  }

  setMemory(entry: number, place: number): void {
    this.#set(entry, memory, place);
  }

  /** Copies one chunk's words into `into`, for a checkpoint; `into` must hold a whole chunk. */
  copyChunk(index: number, into: Uint32Array): Uint32Array {
    const chunk = this.#chunks[index];
    assert(chunk, "a chunk that is there");
    const words = Math.min(entriesPerChunk, this.#end - index * entriesPerChunk) * entryWords;
    into.set(words === chunk.length ? chunk : chunk.subarray(0, words));
    return into.subarray(0, words);
  }

  get chunkCount(): number {
    return Math.ceil(this.#end / entriesPerChunk);
  }

  /**
   * Takes over the chunks of a checkpoint, without copying, into an empty table. A checkpoint is written while entries
   * change, so it may hold one key twice; one of them counts then, and the log decides in the end.
   */
  load(chunks: readonly Uint32Array[]): void {
    assert(this.#count === 0 && this.#end === 0, "an empty table");
    const entries = chunks.reduce((sum, words) => sum + words.length / entryWords, 0);
    let capacity = this.#mask + 1;
    while (entries > capacity * loadMax) capacity *= 2;
    this.#resize(capacity);
    for (const words of chunks) this.#chunks.push(asChunk(words));
    this.#end = entries;
    for (let end = entries; end > 0; end -= groupMax) {
      const from = Math.max(0, end - groupMax);
      this.#fetchHomes(from, end);
      for (let entry = end - 1; entry >= from; entry -= 1) this.#adopt(entry);
    }
  }

  /** Touches the slots that these will use, so that cache misses overlap: see `findGroup`. */
  #fetchHomes(from: number, end: number): void {
    const slots = this.#slots;
    const mask = this.#mask;
    let seen = 0;
    for (let entry = from; entry < end; entry += 1) seen ^= slots[2 * (this.#word(entry, 0) & mask) + 1] as number;
    this.seen = seen;
  }

  #adopt(entry: number): void {
    const chunk = this.#chunk(entry);
    const base = (entry & inChunk) * entryWords;
    const word = chunk[base + misc] ?? 0;
    if ((word & flags.taken) !== 0 && this.#linkUnlessTwin(entry, chunk[base] ?? 0)) {
      if ((word & flags.file) === 0) chunk[base + memory] = 0;
      this.#count += 1;
      return;
    }
    chunk.fill(0, base, base + entryWords);
    chunk[base] = this.#free + 1;
    this.#free = entry;
  }

  /** False if its key is there already. */
  #linkUnlessTwin(entry: number, first: number): boolean {
    const slots = this.#slots;
    let slot = first & this.#mask;
    for (; slots[2 * slot + 1] !== 0; slot = (slot + 1) & this.#mask)
      if (slots[2 * slot] === first && this.#isAt((slots[2 * slot + 1] ?? 0) - 1, this.key(entry), 0, this.fn(entry)))
        return false;
    slots[2 * slot] = first;
    slots[2 * slot + 1] = entry + 1;
    return true;
  }

  #word(entry: number, at: number): number {
    return this.#chunk(entry)[(entry & inChunk) * entryWords + at] ?? 0;
  }

  #set(entry: number, at: number, value: number): void {
    this.#chunk(entry)[(entry & inChunk) * entryWords + at] = value;
  }

  #chunk(entry: number): Uint32Array {
    return this.#chunks[entry >>> chunkBits] as Uint32Array;
  }

  #allot(): number {
    if (this.#free !== noEntry) {
      const entry = this.#free;
      this.#free = this.#word(entry, 0) - 1;
      return entry;
    }
    const entry = this.#end;
    this.#end += 1;
    if (entry >>> chunkBits === this.#chunks.length) this.#chunks.push(new Uint32Array(entriesPerChunk * entryWords));
    return entry;
  }

  #link(first: number, entry: number): void {
    const slots = this.#slots;
    let slot = first & this.#mask;
    while (slots[2 * slot + 1] !== 0) slot = (slot + 1) & this.#mask;
    slots[2 * slot] = first;
    slots[2 * slot + 1] = entry + 1;
  }

  /** Linear probing without tombstones: later entries move up where they may. */
  #unlink(entry: number): void {
    const slots = this.#slots;
    const mask = this.#mask;
    let hole = this.#word(entry, 0) & mask;
    while (slots[2 * hole + 1] !== entry + 1) hole = (hole + 1) & mask;
    for (let next = (hole + 1) & mask; slots[2 * next + 1] !== 0; next = (next + 1) & mask) {
      const home = (slots[2 * next] ?? 0) & mask;
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      slots[2 * hole] = slots[2 * next] ?? 0;
      slots[2 * hole + 1] = slots[2 * next + 1] ?? 0;
      hole = next;
    }
    slots[2 * hole] = 0;
    slots[2 * hole + 1] = 0;
  }

  #grow(): void {
    this.#resize((this.#mask + 1) * 2);
  }

  /** Slots hold the first word of the key, so entries need not be read. */
  #resize(capacity: number): void {
    const before = this.#slots;
    this.#slots = new Uint32Array(2 * capacity);
    this.#mask = capacity - 1;
    for (let at = 0; at < before.length; at += 2)
      if (before[at + 1] !== 0) this.#link(before[at] ?? 0, (before[at + 1] ?? 0) - 1);
  }
}

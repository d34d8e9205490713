/**
 * Small blobs in memory: slabs of 1 MiB, of which the oldest is dropped when there are too many. Written records are
 * assembled in a slab and stay there; blobs read from disk are copied into one. The memory of a slab that was handed to
 * a caller is never overwritten.
 */
import { flags, type Table } from "#blobs/disk/table/table.ts";

export const slabBytes = 1024 * 1024;
const offsetBits = 17;
const offsetMask = (1 << offsetBits) - 1;
const slotsMax = (1 << 14) - 1;

export type Slab = {
  readonly slot: number;
  /** Slabs opened before this one. */
  readonly age: number;
  readonly buffer: Buffer;
  usedBytes: number;
  /** Entries with bytes in here, including some that no longer have. */
  readonly entries: number[];
  /** Some of it is not written to disk yet. */
  isBusy: boolean;
  /** Bytes of it were handed to a caller, which may keep them. */
  isShown: boolean;
};

/** Memory for records in transit: no lookup finds anything in it. */
export const passingSlab = (sizeBytes: number): Slab => ({
  slot: -1,
  age: 0,
  buffer: Buffer.allocUnsafeSlow(sizeBytes),
  usedBytes: 0,
  entries: [],
  isBusy: false,
  isShown: false,
});

export class Slabs {
  readonly #table: Table;
  readonly #ring: (Slab | undefined)[];
  #next = 0;
  #age = 0;
  /** The slab that takes blobs read from disk. */
  #reads: Slab | undefined;

  constructor(table: Table, bytesMax: number) {
    this.#table = table;
    const slots = Math.min(slotsMax, Math.max(4, Math.floor(bytesMax / slabBytes)));
    this.#ring = Array.from({ length: slots });
  }

  /** Opens a new slab in place of the oldest that is not being written. */
  open(): Slab {
    let slot = this.#next;
    for (let tries = 0; this.#ring[slot]?.isBusy && tries < this.#ring.length; tries += 1)
      slot = (slot + 1) % this.#ring.length;
    this.#next = (slot + 1) % this.#ring.length;
    const old = this.#ring[slot];
    if (old) this.#letGo(old);
    this.#age += 1;
    const buffer = old && !old.isShown && !old.isBusy ? old.buffer : Buffer.allocUnsafeSlow(slabBytes);
    const slab: Slab = { slot, age: this.#age, buffer, usedBytes: 0, entries: [], isBusy: false, isShown: false };
    this.#ring[slot] = slab;
    return slab;
  }

  #letGo(slab: Slab): void {
    const table = this.#table;
    for (const entry of slab.entries)
      if (!table.has(entry, flags.file) && table.memory(entry) >>> offsetBits === slab.slot + 1)
        table.setMemory(entry, 0);
  }

  /** Records that the entry's bytes are in this slab. */
  place(entry: number, slab: Slab, at: number): void {
    if (this.#ring[slab.slot] !== slab) return;
    slab.entries.push(entry);
    this.#table.setMemory(entry, ((slab.slot + 1) << offsetBits) | (at >>> 3));
  }

  /** Keeps a copy of what was read. */
  keep(entry: number, bytes: Uint8Array): void {
    let slab = this.#reads;
    if (!slab || slab.usedBytes + bytes.length > slabBytes || this.#ring[slab.slot] !== slab)
      this.#reads = slab = this.open();
    const at = slab.usedBytes;
    slab.buffer.set(bytes, at);
    slab.usedBytes = (at + bytes.length + 7) & ~7;
    this.place(entry, slab, at);
  }

  /** Like `bytes`, for a caller that may keep them. */
  shown(entry: number): Buffer | undefined {
    const found = this.bytes(entry);
    const slab = this.#ring[(this.#table.memory(entry) >>> offsetBits) - 1];
    // A blob that was copied just now may have been found in its old slab.
    if (!found || !slab) return found;
    slab.isShown = true;
    return slab.buffer.buffer === found.buffer ? found : this.bytes(entry);
  }

  /** The plain bytes of a packed blob, if they are in memory. The caller must not change or keep them. */
  bytes(entry: number): Buffer | undefined {
    const place = this.#table.memory(entry);
    if (place === 0 || this.#table.has(entry, flags.file)) return undefined;
    const slab = this.#ring[(place >>> offsetBits) - 1];
    if (!slab) return undefined;
    const at = (place & offsetMask) * 8;
    const found = slab.buffer.subarray(at, at + this.#table.sizeOf(entry));
    // A blob that is used shortly before its slab is dropped is worth a copy.
    if (this.#age - slab.age > this.#ring.length / 2) this.keep(entry, found);
    return found;
  }
}

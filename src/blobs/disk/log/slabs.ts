/**
 * Small blobs in memory: slabs of 1 MiB, the oldest of which is let go when there are too many. What is written to the
 * log is put together in a slab and simply stays there; what is read from the disk is copied into one. The memory of a
 * slab that somebody outside may still look at is never written to again.
 */
import { flags, type Table } from "#blobs/disk/table/table.ts";

export const slabBytes = 1024 * 1024;
const offsetBits = 17;
const offsetMask = (1 << offsetBits) - 1;
const slotsMax = (1 << 14) - 1;

export type Slab = {
  readonly slot: number;
  /** Counts slabs since the start. */
  readonly age: number;
  readonly buffer: Buffer;
  usedBytes: number;
  /** Entries with bytes in here, and some that had them once. */
  readonly entries: number[];
  /** Something in it is still to be written to the disk. */
  isBusy: boolean;
  /** Bytes of it were shown to somebody who may look at them for as long as they like. */
  isShown: boolean;
};

/** Memory of what is only passing through: nothing is looked for in it. */
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
  /** Takes what is read from the disk. */
  #reads: Slab | undefined;

  constructor(table: Table, bytesMax: number) {
    this.#table = table;
    const slots = Math.min(slotsMax, Math.max(4, Math.floor(bytesMax / slabBytes)));
    this.#ring = Array.from({ length: slots });
  }

  /** A new slab in the place of the oldest that nobody writes from. */
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

  /** The entry's bytes are in this slab from now on. */
  place(entry: number, slab: Slab, at: number): void {
    if (this.#ring[slab.slot] !== slab) return;
    slab.entries.push(entry);
    this.#table.setMemory(entry, ((slab.slot + 1) << offsetBits) | (at >>> 3));
  }

  /** A copy of what was read. */
  keep(entry: number, bytes: Uint8Array): void {
    let slab = this.#reads;
    if (!slab || slab.usedBytes + bytes.length > slabBytes || this.#ring[slab.slot] !== slab)
      this.#reads = slab = this.open();
    const at = slab.usedBytes;
    slab.buffer.set(bytes, at);
    slab.usedBytes = (at + bytes.length + 7) & ~7;
    this.place(entry, slab, at);
  }

  /** The same as `bytes`, for somebody who may look at them for as long as they like. */
  shown(entry: number): Buffer | undefined {
    const found = this.bytes(entry);
    const slab = this.#ring[(this.#table.memory(entry) >>> offsetBits) - 1];
    // A blob that was copied just now was found in its old slab.
    if (!found || !slab) return found;
    slab.isShown = true;
    return slab.buffer.buffer === found.buffer ? found : this.bytes(entry);
  }

  /** The plain bytes of a packed blob, if they are in memory. To be looked at only, and only now. */
  bytes(entry: number): Buffer | undefined {
    const place = this.#table.memory(entry);
    if (place === 0 || this.#table.has(entry, flags.file)) return undefined;
    const slab = this.#ring[(place >>> offsetBits) - 1];
    if (!slab) return undefined;
    const at = (place & offsetMask) * 8;
    const found = slab.buffer.subarray(at, at + this.#table.sizeOf(entry));
    // What is asked for shortly before its slab goes is worth a copy.
    if (this.#age - slab.age > this.#ring.length / 2) this.keep(entry, found);
    return found;
  }
}

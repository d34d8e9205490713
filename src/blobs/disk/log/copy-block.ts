/**
 * Records of blobs that are copied to the end of the log with one write. They bypass the slabs: blobs in memory stay
 * there, and the others are not worth caching.
 */
import type { Core } from "#blobs/disk/core.ts";
import { kinds, markMoved, recordBytesAt } from "./record.ts";
import { segmentHeaderBytes } from "./segments.ts";
import { passingSlab, type Slab } from "./slabs.ts";

/** A complete record in memory, and where it was read from. */
export type SourceRecord = {
  readonly bytes: Buffer;
  readonly at: number;
  readonly segment: number;
  readonly offset: number;
};

export class CopyBlock {
  readonly #core: Core;
  readonly #slab: Slab;
  /** Entries that tenants without a bit of their own may see. */
  #shared: number[] = [];

  constructor(core: Core, sizeBytes: number) {
    this.#core = core;
    this.#slab = passingSlab(segmentHeaderBytes + sizeBytes);
    this.clear();
  }

  clear(): void {
    this.#slab.usedBytes = segmentHeaderBytes;
    this.#shared = [];
  }

  add(entry: number, record: SourceRecord): void {
    const { table, further } = this.#core.holdings;
    const { bytes, at } = record;
    const slab = this.#slab;
    const length = recordBytesAt(bytes, at);
    bytes.copy(slab.buffer, slab.usedBytes, at, at + length);
    markMoved(slab.buffer, slab.usedBytes, {
      accessSec: table.accessSec(entry),
      keepSec: table.keepSec(entry),
      visible: table.visible(entry),
      from: record,
    });
    slab.usedBytes += length;
    if (further.has(entry)) this.#shared.push(entry);
  }

  /** The block must be cleared when all returned promises have settled. */
  append(): readonly Promise<unknown>[] {
    const { holdings, log } = this.#core;
    if (this.#slab.usedBytes === segmentHeaderBytes) return [];
    const written: Promise<unknown>[] = [log.appendBlock(this.#slab)];
    // After the blobs: a grant has no effect before its blob is in the log.
    for (const entry of this.#shared)
      for (const tenant of holdings.further.get(entry) ?? [])
        written.push(this.#core.appendKeys({ kind: kinds.grants, visible: tenant }, [entry]));
    return written;
  }
}

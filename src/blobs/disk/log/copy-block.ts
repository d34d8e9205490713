/**
 * Records of blobs that are copied to the end of the log together: a write, and somebody who waits for it, for all of
 * them. Not by way of the slabs: what was in memory stays there, and what was not is not worth it.
 */
import type { Core } from "#blobs/disk/core.ts";
import { kinds, markMoved, recordBytesAt } from "./record.ts";
import { segmentHeaderBytes } from "./segments.ts";
import { passingSlab, type Slab } from "./slabs.ts";

/** A record in memory, and where it was read from. All of it is there. */
export type SourceRecord = {
  readonly bytes: Buffer;
  readonly at: number;
  readonly segment: number;
  readonly offset: number;
};

export class CopyBlock {
  readonly #core: Core;
  readonly #slab: Slab;
  /** Those that tenants without a bit may see. */
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

  /** To be cleared when all that this gives has come to an end. */
  append(): readonly Promise<unknown>[] {
    const { holdings, log } = this.#core;
    if (this.#slab.usedBytes === segmentHeaderBytes) return [];
    const written: Promise<unknown>[] = [log.appendBlock(this.#slab)];
    // Behind them: a grant means nothing before there is a blob.
    for (const entry of this.#shared)
      for (const tenant of holdings.further.get(entry) ?? [])
        written.push(this.#core.appendKeys({ kind: kinds.grants, visible: tenant }, [entry]));
    return written;
  }
}

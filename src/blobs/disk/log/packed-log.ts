/**
 * The packed log. Records are assembled in memory and written one after another, segment by segment; records that
 * arrive during a write are gathered for the next one. A record is acknowledged when write(2) has returned, so it
 * survives the process; `sync` makes it survive a power failure. With sync "synced", one sync serves all gathered
 * records.
 */
import { ftruncate } from "node:fs";
import { must } from "#base/assert.ts";
import { isFault, type Fault } from "#base/fault.ts";
import type { Position } from "./checkpoint.ts";
import type { Syncs } from "#blobs/syncs.ts";
import { asDiskFault, folderIsLost, noSpace, storeIsClosed } from "#blobs/disk/disk-fault.ts";
import type { InlineGate } from "#blobs/disk/upload/inline-gate.ts";
import { syncRegions, writeElsewhere, writeInline, type Failure, type Region } from "./log-writes.ts";
import { headerBytes, numberRecord, recordBytes, sealRecord, type NewHeader } from "./record.ts";
import type { SpaceBudget } from "#blobs/disk/janitor/space-budget.ts";
import { SegmentSyncs } from "./segment-syncs.ts";
import { segmentHeaderBytes, type Segment, type Segments } from "./segments.ts";
import { slabBytes, type Slab, type Slabs } from "./slabs.ts";

/** One record, or several in a row. */
export type Written = {
  readonly slab: Slab;
  /** Its offset in the slab. */
  readonly at: number;
  readonly lengthBytes: number;
  readonly segment: number;
  readonly offset: number;
};

export type LogParts = {
  readonly segments: Segments;
  readonly slabs: Slabs;
  readonly budget: SpaceBudget;
  readonly gate: InlineGate;
  readonly segmentBytes: number;
  readonly syncs: Syncs;
  /** Acknowledge only after a sync. */
  readonly isSynced: boolean;
  /** Called once when the folder was found to be gone. */
  readonly onLost: () => void;
  /** Called in order for each write, before its writer is acknowledged. */
  readonly onWritten: (written: Written) => void;
};

export type Appending = {
  readonly header: NewHeader;
  readonly bodyBytes: number;
  readonly fill: (target: Buffer, at: number) => void;
  /** For the store itself: may use the reserved space. */
  readonly isOwn?: boolean;
};

export type Beginning = { readonly sequence: number; readonly checkpointSegment: number };

type Waiting = {
  readonly record: Written | undefined;
  readonly region: Region | undefined;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  readonly sequence: number;
};

const inlineBytesMax = 512 * 1024;
const segmentMagic = Buffer.from("MRLOG01\n");

export class PackedLog {
  readonly #parts: LogParts;
  #segment: Segment | undefined;
  #nextNumber: number;
  #nextOffset = 0;
  #sequence: number;
  #applied: Position;
  #writtenBytes = 0;
  #slab: Slab | undefined;
  #regions: Region[] = [];
  #waiting: Waiting[] = [];
  /** Records that are being written to disk. */
  #underWay: readonly Waiting[] = [];
  #isScheduled = false;
  #isWriting = false;
  #isClosed = false;
  #lost: Fault | undefined;
  readonly #syncs: SegmentSyncs;

  /** Continues after recovery in a new segment, whose number was never used before. */
  constructor(parts: LogParts, { sequence, checkpointSegment }: Beginning) {
    this.#parts = parts;
    this.#syncs = new SegmentSyncs(parts.segments, parts.syncs);
    this.#sequence = sequence;
    this.#nextNumber = Math.max(parts.segments.numbers.at(-1) ?? 0, checkpointSegment) + 1;
    this.#applied = { segment: this.#nextNumber, offset: 0, sequence };
  }

  /** Everything before this position was written and applied; later records have higher sequence numbers. */
  get applied(): Position {
    return this.#applied;
  }

  /** Since the process started. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  get sequence(): number {
    return this.#sequence;
  }

  /** The segment being written; the janitor must not touch it. */
  get current(): number {
    return this.#segment?.number ?? this.#nextNumber;
  }

  append({ header, bodyBytes, fill, isOwn = false }: Appending): Promise<void> {
    const { budget } = this.#parts;
    const length = recordBytes(bodyBytes);
    if (this.#isClosed || this.#lost) return Promise.reject(this.#lost ?? storeIsClosed("append to log"));
    if (isOwn) budget.takeOwn(length);
    else if (!budget.take(length)) return Promise.reject(noSpace("append to log", { neededBytes: length }));
    try {
      const { slab, region } = this.#spaceFor(length);
      const at = slab.usedBytes;
      fill(slab.buffer, at + headerBytes);
      this.#sequence += 1;
      const sequence = this.#sequence;
      sealRecord(slab.buffer, at, header, { bodyBytes, sequence });
      const record = { slab, at, lengthBytes: length, segment: region.segment.number, offset: this.#nextOffset };
      slab.usedBytes += length;
      region.to = slab.usedBytes;
      this.#nextOffset += length;
      return this.#waitFor(record, region, sequence);
    } catch (error) {
      budget.give(length);
      return Promise.reject(asDiskFault(error, "append to log"));
    }
  }

  /**
   * Appends records of the store itself that lie in a row in the caller's slab; this numbers them. The slab must have
   * space before them for a segment's first record, and must not change until this returns.
   */
  appendBlock(slab: Slab): Promise<void> {
    const { budget } = this.#parts;
    const length = slab.usedBytes - segmentHeaderBytes;
    if (this.#isClosed || this.#lost) return Promise.reject(this.#lost ?? storeIsClosed("append to log"));
    budget.takeOwn(length);
    try {
      const segment = this.#segmentFor(length);
      const from = this.#nextOffset === 0 ? 0 : segmentHeaderBytes;
      const region = { slab, from, to: slab.usedBytes, segment, offset: this.#nextOffset };
      if (this.#nextOffset === 0) this.#beginSegment(slab.buffer, 0, segment);
      this.#regions.push(region);
      for (let at = segmentHeaderBytes; at < slab.usedBytes;) {
        this.#sequence += 1;
        at += numberRecord(slab.buffer, at, this.#sequence);
      }
      const offset = this.#nextOffset;
      this.#nextOffset += length;
      const written = { slab, at: segmentHeaderBytes, lengthBytes: length, segment: segment.number, offset };
      return this.#waitFor(written, region, this.#sequence);
    } catch (error) {
      budget.give(length);
      return Promise.reject(asDiskFault(error, "append to log"));
    }
  }

  /** Records that were appended but not written yet. */
  *coming(): Generator<Written> {
    for (const { record } of this.#underWay) if (record) yield record;
    for (const { record } of this.#waiting) if (record) yield record;
  }

  /**
   * Refuses new records, because another process may open the folder next; resolves when all accepted records are
   * written.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.settled();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Set once the folder was found to be gone. */
  get lost(): Fault | undefined {
    return this.#lost;
  }

  /** Refuses new records, because written ones would not be found again. */
  lose(): void {
    if (this.#lost) return;
    this.#lost = folderIsLost();
    this.#parts.onLost();
  }

  /** Resolves when every record appended so far was written or failed. */
  settled(): Promise<void> {
    if (this.#waiting.length === 0 && !this.#isWriting) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = (): void => resolve();
    this.#waiting.push({ record: undefined, region: undefined, resolve: done, reject: done, sequence: 0 });
    this.#schedule();
    return promise;
  }

  #waitFor(record: Written, region: Region, sequence: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ record, region, resolve, reject, sequence });
      this.#schedule();
    });
  }

  #segmentFor(length: number): Segment {
    if (!this.#segment || this.#nextOffset + length > this.#parts.segmentBytes) this.#roll();
    return must(this.#segment, "a segment to write to");
  }

  #spaceFor(length: number): { readonly slab: Slab; readonly region: Region } {
    const segment = this.#segmentFor(length);
    let slab = this.#slab;
    if (!slab || slab.usedBytes + length + segmentHeaderBytes > slabBytes) this.#slab = slab = this.#parts.slabs.open();
    slab.isBusy = true;
    let region = this.#regions.at(-1);
    if (region?.slab !== slab || region.segment !== segment) {
      region = { slab, from: slab.usedBytes, to: slab.usedBytes, segment, offset: this.#nextOffset };
      this.#regions.push(region);
      if (this.#nextOffset === 0) slab.usedBytes += this.#beginSegment(slab.buffer, slab.usedBytes, segment);
    }
    return { slab, region };
  }

  #beginSegment(buffer: Buffer, at: number, segment: Segment): number {
    buffer.set(segmentMagic, at);
    buffer.writeUInt32LE(segment.number, at + 8);
    buffer.writeUInt32LE(0, at + 12);
    this.#nextOffset = segmentHeaderBytes;
    this.#parts.budget.takeOwn(segmentHeaderBytes);
    return segmentHeaderBytes;
  }

  #roll(): void {
    const full = this.#segment;
    this.#segment = this.#parts.segments.create(this.#nextNumber);
    this.#nextNumber += 1;
    this.#nextOffset = 0;
    // Sync full segments early, so that most pins need not wait for older ones.
    if (full)
      this.settled()
        .then(() => this.sync(full.number))
        .catch(() => {});
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isWriting) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    const regions = this.#regions;
    const waiting = this.#waiting;
    this.#regions = [];
    this.#waiting = [];
    const { gate, segments, isSynced } = this.#parts;
    const bytes = regions.reduce((sum, { from, to }) => sum + to - from, 0);
    const isQuick = bytes <= inlineBytesMax && gate.isOpen();
    if (isQuick && (!isSynced || bytes === 0)) {
      const failure = gate.run(() => writeInline(regions, segments));
      return this.#conclude(regions, waiting, failure);
    }
    this.#isWriting = true;
    this.#underWay = waiting;
    void this.#writeAll(regions, isQuick).then((failure) => {
      this.#isWriting = false;
      this.#underWay = [];
      this.#conclude(regions, waiting, failure);
    });
  }

  async #writeAll(regions: readonly Region[], isQuick: boolean): Promise<Failure | undefined> {
    const { gate, segments, isSynced, syncs } = this.#parts;
    const failure = isQuick ? gate.run(() => writeInline(regions, segments)) : await writeElsewhere(regions, segments);
    return failure ?? (isSynced ? await syncRegions(regions, segments, syncs) : undefined);
  }

  #conclude(regions: readonly Region[], waiting: readonly Waiting[], failure: Failure | undefined): void {
    const failed = failure ? regions.indexOf(failure.region) : regions.length;
    regions.forEach(({ slab, segment, offset, from, to }, i) => {
      if (i < failed) {
        segment.sizeBytes = Math.max(segment.sizeBytes, offset + to - from);
        this.#writtenBytes += to - from;
      }
      slab.isBusy = this.#regions.some((later) => later.slab === slab);
    });
    let lastSequence = this.#applied.sequence;
    const unwritten = failure ? new Set(regions.slice(failed)) : undefined;
    for (const { record, region, resolve, reject, sequence } of waiting) {
      if (region && unwritten?.has(region)) {
        reject(asDiskFault(failure?.error, "append to log"));
        continue;
      }
      if (record) this.#parts.onWritten(record);
      resolve();
      if (sequence > 0) lastSequence = sequence;
    }
    const last = regions[failed - 1];
    if (last) {
      const offset = last.offset + last.to - last.from;
      this.#applied = { segment: last.segment.number, offset, sequence: lastSequence };
    }
    if (failure && this.#isGone(failure)) this.lose();
    if (failure) this.#giveUp(failure, regions.slice(failed));
    if (this.#waiting.length > 0) this.#schedule();
  }

  #isGone({ error }: Failure): boolean {
    return isFault(error, "unavailable") && error.facts["why"] === folderIsLost().facts["why"];
  }

  /**
   * Records behind a failed write are refused too. The segment is truncated to its last complete record, and the next
   * record begins a new segment.
   */
  #giveUp({ error, region }: Failure, regions: readonly Region[]): void {
    const { segments, budget } = this.#parts;
    const late = this.#waiting;
    const all = [...regions, ...this.#regions];
    this.#waiting = [];
    this.#regions = [];
    this.#segment = undefined;
    this.#slab = undefined;
    for (const { from, to, slab } of all) {
      budget.give(to - from);
      slab.isBusy = false;
    }
    for (const segment of new Set(all.map((one) => one.segment))) {
      if (segment.sizeBytes === 0) segments.removeEmpty(segment.number);
      else if (segment === region.segment) this.#cut(segment);
    }
    for (const { region: place, resolve, reject } of late)
      if (place) reject(asDiskFault(error, "append to log"));
      else resolve();
  }

  /** Frees disk space. Leftover bytes would do no harm: recovery skips them by their sequence numbers. */
  #cut(segment: Segment): void {
    const { segments } = this.#parts;
    const fd = segments.acquire(segment.number);
    ftruncate(fd, segment.sizeBytes, () => segments.release(segment.number, fd));
  }

  /** Makes durable what was written to the segment so far. */
  sync(number: number): Promise<void> {
    return this.#syncs.sync(number);
  }
}

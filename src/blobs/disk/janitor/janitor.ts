/**
 * Keeps the store within its limits: above the high watermark it evicts the blobs unused the longest, down to the low
 * watermark, but never pinned or promised ones; and it compacts segments that are mostly dead.
 */
import { AgeSurvey, isEvictable, worthTidying, type Guards } from "./choose.ts";
import { compactSegment } from "#blobs/disk/log/compact.ts";
import type { Core } from "#blobs/disk/core.ts";
import { flags } from "#blobs/disk/table/table.ts";

/** Entries to look at before yielding: a fraction of a millisecond. */
const slice = 1_000;
/** Entries to evict with one record; also a fraction of a millisecond. */
const dropAtOnce = 200;
/** A segment with a smaller dead share is not compacted unless space is short. */
const deadShareCalm = 0.5;
const deadShareShort = 0.02;

export type Swept = { readonly evicted: number; readonly evictedBytes: number; readonly freedBytes: number };

export class Janitor {
  readonly #core: Core;
  #running: Promise<Swept> | undefined;
  evicted = 0;
  evictedBytes = 0;
  /** How long the last evicted blob had been unused. */
  evictionAgeSec = 0;
  /** Last use of the youngest evicted blob. */
  cutOffSec: number | undefined;

  constructor(core: Core) {
    this.#core = core;
  }

  get #high(): number {
    return this.#core.budget.offeredBytes * this.#core.options.highWatermark;
  }

  get #low(): number {
    return this.#core.budget.offeredBytes * this.#core.options.lowWatermark;
  }

  get isDue(): boolean {
    return this.#core.budget.usedBytes > this.#high || this.#tooMany > 0;
  }

  /** Entries above the limit: the table has watermarks like the disk. */
  get #tooMany(): number {
    const { entriesMax, highWatermark, lowWatermark } = this.#core.options;
    const { count } = this.#core.holdings.table;
    return count > entriesMax * highWatermark ? count - Math.floor(entriesMax * lowWatermark) : 0;
  }

  /** Evicts down to the low watermark if usage is above the high one, and compacts segments that are mostly dead. */
  async tidy(): Promise<Swept> {
    const { budget } = this.#core;
    return await this.#sweep(budget.usedBytes > this.#high ? budget.usedBytes - this.#low : 0);
  }

  /** Makes `bytes` more fit. False if too much is pinned or promised. */
  async makeSpace(bytes: number): Promise<boolean> {
    const { budget } = this.#core;
    this.#core.measureDisk();
    if (bytes > budget.offeredBytes) return false;
    // Twice, because a sweep in progress may have wanted less. A full sweep, because freeing only these bytes would
    // make the next writer wait again.
    for (let tries = 0; tries < 2 && !budget.fits(bytes); tries += 1)
      await this.#core.pace.hurry(() => this.#sweep(Math.max(budget.usedBytes - this.#low + bytes, bytes)));
    return budget.fits(bytes);
  }

  /** Makes one more entry fit into the table. */
  async makeEntries(): Promise<boolean> {
    const { table } = this.#core.holdings;
    const { entriesMax } = this.#core.options;
    for (let tries = 0; tries < 2 && table.count >= entriesMax; tries += 1)
      await this.#core.pace.hurry(() => this.#sweep(0));
    return table.count < entriesMax;
  }

  /** Copies what can be read of segments whose files were removed or cut from outside. True if there were any. */
  async rescue(): Promise<boolean> {
    const { segments, log, options } = this.#core;
    const lost = (await segments.damaged()).filter((number) => number !== log.current);
    if (lost.length === 0) return false;
    options.report("segments of the log were removed or cut; what can still be read of them is copied", {
      segments: lost.join(", "),
    });
    while (this.#running) await this.#running;
    this.#running = this.#compactAll(lost)
      .then(() => nothingSwept)
      .finally(() => (this.#running = undefined));
    await this.#running;
    return true;
  }

  async #compactAll(numbers: readonly number[]): Promise<void> {
    for (const number of numbers) await compactSegment(this.#core, number);
  }

  /** Frees at least so many bytes if it can, in a sweep of its own: one in progress may have wanted less. */
  async free(wantedBytes: () => number): Promise<void> {
    while (this.#running) await this.#running;
    const wanted = wantedBytes();
    if (wanted > 0) await this.#sweep(wanted);
  }

  async #sweep(wantedBytes: number): Promise<Swept> {
    // Callers share a sweep in progress, and ask again if it was not enough.
    if (this.#running) return await this.#running;
    this.#running = this.#run(wantedBytes).finally(() => (this.#running = undefined));
    return await this.#running;
  }

  async #run(wantedBytes: number): Promise<Swept> {
    const { budget } = this.#core;
    const beforeBytes = budget.usedBytes;
    const missing = wantedBytes - this.#deadBytes();
    const forBytes = missing > 0 ? await this.#evict(missing, (entry) => this.#bytesOf(entry)) : nothing;
    const forEntries = this.#tooMany > 0 ? await this.#evict(this.#tooMany, () => 1) : nothing;
    const evicted = forBytes.evicted + forEntries.evicted;
    const evictedBytes = forBytes.evictedBytes + forEntries.evictedBytes;
    this.evicted += evicted;
    this.evictedBytes += evictedBytes;
    await this.#compact(wantedBytes - (beforeBytes - budget.usedBytes));
    return { evicted, evictedBytes, freedBytes: Math.max(0, beforeBytes - budget.usedBytes) };
  }

  #deadBytes(): number {
    let dead = 0;
    for (const { sizeBytes, liveBytes } of this.#others()) dead += sizeBytes - liveBytes;
    return dead;
  }

  #others() {
    const { log, segments } = this.#core;
    return [...segments.all()].filter(({ number }) => number !== log.current);
  }

  /** Computed for each slice, because time passes. */
  #guards(): Guards {
    return { nowSec: this.#core.nowSec(), promisedSinceSec: this.#core.promisedSinceSec() };
  }

  #bytesOf(entry: number): number {
    const { table } = this.#core.holdings;
    return table.has(entry, flags.file) ? table.fileBytes(entry) : table.recordBytes(entry);
  }

  /** `weigh` returns how much of what is wanted the entry's eviction would give. */
  async #evict(
    wanted: number,
    weigh: (entry: number) => number,
  ): Promise<{ readonly evicted: number; readonly evictedBytes: number }> {
    const { table } = this.#core.holdings;
    const survey = new AgeSurvey(await this.#oldestSec(), this.#core.nowSec());
    await this.#inSlices((from, to) => {
      const guards = this.#guards();
      for (let entry = from; entry < to; entry += 1)
        if (isEvictable(table, entry, guards)) survey.add(table.accessSec(entry), weigh(entry));
    });
    const cutOffSec = survey.cutOffSec(wanted);
    let evicted = 0;
    let evictedBytes = 0;
    let got = 0;
    await this.#inSlices(async (from, to) => {
      if (got >= wanted) return;
      const { chosen, bytes } = this.#choose({ from, to, cutOffSec });
      evicted += chosen.length;
      evictedBytes += bytes;
      for (const entry of chosen) got += weigh(entry);
      for (let at = 0; at < chosen.length; at += dropAtOnce) {
        await this.#core.drop(this.#stillToGo(chosen.slice(at, at + dropAtOnce), cutOffSec));
        await this.#core.pace.giveWay();
      }
    });
    if (evicted > 0 && Number.isFinite(cutOffSec)) {
      this.cutOffSec = cutOffSec;
      this.evictionAgeSec = Math.max(0, this.#core.nowSec() - cutOffSec);
    }
    return { evicted, evictedBytes };
  }

  /** Leaves out entries that were used or pinned since they were chosen. */
  #stillToGo(chosen: readonly number[], cutOffSec: number): readonly number[] {
    const { table } = this.#core.holdings;
    const guards = this.#guards();
    return chosen.filter((entry) => isEvictable(table, entry, guards) && table.accessSec(entry) < cutOffSec);
  }

  #choose({ from, to, cutOffSec }: { readonly from: number; readonly to: number; readonly cutOffSec: number }) {
    const { table } = this.#core.holdings;
    const guards = this.#guards();
    const chosen: number[] = [];
    let bytes = 0;
    for (let entry = from; entry < to; entry += 1) {
      if (!isEvictable(table, entry, guards) || table.accessSec(entry) >= cutOffSec) continue;
      chosen.push(entry);
      bytes += this.#bytesOf(entry);
    }
    return { chosen, bytes };
  }

  async #oldestSec(): Promise<number> {
    const { table } = this.#core.holdings;
    let oldest = this.#core.nowSec();
    await this.#inSlices((from, to) => {
      for (let entry = from; entry < to; entry += 1)
        if (table.isTaken(entry)) oldest = Math.min(oldest, table.accessSec(entry));
    });
    return oldest;
  }

  async #inSlices(work: (from: number, to: number) => void | Promise<void>): Promise<void> {
    const { table } = this.#core.holdings;
    for (let from = 0; from < table.end; from += slice) {
      await work(from, Math.min(table.end, from + slice));
      await this.#core.pace.giveWay();
    }
  }

  async #compact(wantedBytes: number): Promise<void> {
    const shareMin = wantedBytes > 0 ? deadShareShort : deadShareCalm;
    for (const number of worthTidying(this.#others(), wantedBytes, shareMin)) {
      try {
        await compactSegment(this.#core, number);
      } catch (error) {
        this.#core.options.report("a segment could not be compacted", { segment: number, why: String(error) });
        return;
      }
    }
  }
}

const nothing = { evicted: 0, evictedBytes: 0 };
const nothingSwept: Swept = { ...nothing, freedBytes: 0 };

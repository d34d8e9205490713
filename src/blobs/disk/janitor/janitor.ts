/**
 * Keeps the store within its limits: above the high watermark it lets go of what was used longest ago, never of what
 * is pinned or promised, down to the low one; and it tidies up segments of which little is of use any more.
 */
import { AgeSurvey, isEvictable, worthTidying, type Guards } from "./choose.ts";
import { compactSegment } from "#blobs/disk/log/compact.ts";
import type { Core } from "#blobs/disk/core.ts";
import { flags } from "#blobs/disk/table/table.ts";

/** Entries looked at before others have their turn: a fraction of a millisecond. */
const slice = 1_000;
/** Entries let go of with one record; likewise. */
const dropAtOnce = 200;
/** A segment of which less than this is dead is left alone, unless room is short. */
const deadShareCalm = 0.5;
const deadShareShort = 0.02;

export type Swept = { readonly evicted: number; readonly evictedBytes: number; readonly freedBytes: number };

export class Janitor {
  readonly #core: Core;
  #running: Promise<Swept> | undefined;
  evicted = 0;
  evictedBytes = 0;
  /** How long what was let go of last had not been used by then. */
  evictionAgeSec = 0;
  /** When the youngest of what was let go was last used. */
  cutOffSec: number | undefined;

  constructor(core: Core) {
    this.#core = core;
  }

  get #high(): number {
    return this.#core.room.offeredBytes * this.#core.options.highWatermark;
  }

  get #low(): number {
    return this.#core.room.offeredBytes * this.#core.options.lowWatermark;
  }

  get isDue(): boolean {
    return this.#core.room.usedBytes > this.#high || this.#tooMany > 0;
  }

  /** Entries that have to go: the table has watermarks as the disk has. */
  get #tooMany(): number {
    const { entriesMax, highWatermark, lowWatermark } = this.#core.options;
    const { count } = this.#core.holdings.table;
    return count > entriesMax * highWatermark ? count - Math.floor(entriesMax * lowWatermark) : 0;
  }

  /** Down to the low watermark, if it is above the high one; and segments that are mostly dead in any case. */
  async tidy(): Promise<Swept> {
    const { room } = this.#core;
    return await this.#sweep(room.usedBytes > this.#high ? room.usedBytes - this.#low : 0);
  }

  /** So that `bytes` more fit. False: there is too much that has to stay. */
  async makeRoom(bytes: number): Promise<boolean> {
    const { room } = this.#core;
    this.#core.measureDisk();
    if (bytes > room.offeredBytes) return false;
    // Room for this one alone would have the next one wait again; and one that was under way may have wanted less.
    for (let tries = 0; tries < 2 && !room.fits(bytes); tries += 1)
      await this.#core.pace.hurry(() => this.#sweep(Math.max(room.usedBytes - this.#low + bytes, bytes)));
    return room.fits(bytes);
  }

  /** So that one more entry fits in the table. */
  async makeEntries(): Promise<boolean> {
    const { table } = this.#core.holdings;
    const { entriesMax } = this.#core.options;
    for (let tries = 0; tries < 2 && table.count >= entriesMax; tries += 1)
      await this.#core.pace.hurry(() => this.#sweep(0));
    return table.count < entriesMax;
  }

  /** Frees at least so much, if it can. */
  async free(bytes: number): Promise<Swept> {
    return await this.#sweep(bytes);
  }

  async #sweep(wantedBytes: number): Promise<Swept> {
    // Whoever comes while one is under way is content with that one, or asks again.
    if (this.#running) return await this.#running;
    this.#running = this.#run(wantedBytes).finally(() => (this.#running = undefined));
    return await this.#running;
  }

  async #run(wantedBytes: number): Promise<Swept> {
    const { room } = this.#core;
    const beforeBytes = room.usedBytes;
    const missing = wantedBytes - this.#deadBytes();
    const forBytes = missing > 0 ? await this.#evict(missing, (entry) => this.#bytesOf(entry)) : nothing;
    const forEntries = this.#tooMany > 0 ? await this.#evict(this.#tooMany, () => 1) : nothing;
    const evicted = forBytes.evicted + forEntries.evicted;
    const evictedBytes = forBytes.evictedBytes + forEntries.evictedBytes;
    this.evicted += evicted;
    this.evictedBytes += evictedBytes;
    await this.#compact(wantedBytes - (beforeBytes - room.usedBytes));
    return { evicted, evictedBytes, freedBytes: Math.max(0, beforeBytes - room.usedBytes) };
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

  /** Reckoned anew for each slice: time goes on. */
  #guards(): Guards {
    return { nowSec: this.#core.nowSec(), promisedSinceSec: this.#core.promisedSinceSec() };
  }

  #bytesOf(entry: number): number {
    const { table } = this.#core.holdings;
    return table.has(entry, flags.file) ? table.fileBytes(entry) : table.recordBytes(entry);
  }

  /** `weigh` says how much of what is wanted an entry gives. */
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

  /** Some may have been used, or pinned, since they were chosen. */
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
        this.#core.options.report("a segment could not be tidied up", { segment: number, why: String(error) });
        return;
      }
    }
  }
}

const nothing = { evicted: 0, evictedBytes: 0 };

/**
 * Keeps the log short without losing any of it: batches that both snapshot and history have passed are written to the
 * store as blobs, recorded, and only then trimmed (J5).
 */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Epoch, Journal, Seq } from "#journal/journal.ts";
import { digestOf, encodeLine } from "#shard/codec/segment.ts";
import { keepState } from "./kept-states.ts";

export type ArchiverSettings = {
  readonly archive: boolean;
  readonly segmentBytes: number;
  readonly keysPerTrim: number;
};

export const defaultArchiverSettings: ArchiverSettings = {
  archive: true,
  segmentBytes: 1024 * 1024,
  keysPerTrim: 1_000,
};

export type ArchiverPorts = {
  readonly clock: Clock;
  readonly journal: Pick<
    Journal,
    "read" | "segments" | "recordSegment" | "trim" | "trimKeys" | "loadSnapshot" | "records"
  >;
  readonly blobs: Pick<BlobStore, "read" | "write" | "pin">;
  readonly settings: ArchiverSettings;
  /** Whether this node still owns the shard. */
  readonly isOurs: (shard: ShardId, epoch: Epoch) => boolean;
  /** The newest instant that the shard has acted on: no later owner starts before it. */
  readonly reachedMs: (shard: ShardId) => number;
  readonly report: (doing: string, error: unknown) => void;
};

/** Practically for ever. */
const keepMs = 100 * 365 * 24 * 3_600_000;

export class Archiver {
  readonly #ports: ArchiverPorts;
  readonly #busy = new Map<ShardId, Seq>();
  #queue: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(ports: ArchiverPorts) {
    this.#ports = ports;
  }

  kill(): void {
    this.#stopped = true;
  }

  /** Archives and trims the log up to the batch, which snapshot and history must have passed; one shard at a time. */
  tidy(shard: ShardId, epoch: Epoch, throughSeq: Seq): void {
    if (this.#stopped || !this.#ports.settings.archive || (this.#busy.get(shard) ?? 0) >= throughSeq) return;
    this.#busy.set(shard, throughSeq);
    this.#queue = this.#queue.then(async () => {
      try {
        await this.#archive(shard, epoch, throughSeq);
        if (this.#isOurs(shard, epoch)) await this.#keepState(shard);
        await this.#trim(shard, epoch, throughSeq);
      } catch (error) {
        if (!isFault(error, "stale")) this.#ports.report(`archive the log of shard ${shard}`, error);
      }
      this.#busy.delete(shard);
    });
  }

  /** Without it, who reads far back takes longer; nothing else is worse. */
  async #keepState(shard: ShardId): Promise<void> {
    const { journal, blobs, report } = this.#ports;
    try {
      await keepState({ journal, blobs, keepMs }, shard);
    } catch (error) {
      report(`keep a state of shard ${shard} beside its archive`, error);
    }
  }

  async #archive(shard: ShardId, epoch: Epoch, throughSeq: Seq): Promise<void> {
    const { journal, clock, settings } = this.#ports;
    let from = await this.#next(shard);
    if (from > throughSeq) return;
    let lines: Uint8Array[] = [];
    let bytes = 0;
    for await (const record of journal.read(shard, from)) {
      if (record.seq > throughSeq) break;
      const line = encodeLine(record);
      lines.push(line);
      bytes += line.length;
      if (bytes < settings.segmentBytes && record.seq < throughSeq) continue;
      if (!this.#isOurs(shard, epoch)) throw new Fault("stale", "archive log", { shard, epoch });
      await this.#write(lines, { shard, epoch, fromSeq: from, throughSeq: record.seq });
      from = record.seq + 1;
      lines = [];
      bytes = 0;
      await clock.sleep(0);
    }
  }

  async #next(shard: ShardId): Promise<Seq> {
    const newest = (await this.#ports.journal.segments(shard)).at(-1);
    return (newest?.throughSeq ?? 0) + 1;
  }

  async #write(
    lines: readonly Uint8Array[],
    at: { readonly shard: ShardId; readonly epoch: Epoch; readonly fromSeq: Seq; readonly throughSeq: Seq },
  ): Promise<void> {
    const { blobs, journal } = this.#ports;
    const { shard, epoch, fromSeq, throughSeq } = at;
    const segment = Buffer.concat(lines);
    const digest = digestOf(segment);
    await blobs.write(digest, segment);
    const pin = await blobs.pin([digest], keepMs);
    if ("missing" in pin) throw new Fault("not-found", "pin log segment", { shard, digest });
    await journal.recordSegment({ shard, fromSeq, throughSeq, digest, sizeBytes: segment.length }, epoch);
  }

  async #trim(shard: ShardId, epoch: Epoch, throughSeq: Seq): Promise<void> {
    const { journal, settings, reachedMs } = this.#ports;
    const { keysPerTrim } = settings;
    while (this.#isOurs(shard, epoch) && (await journal.trimKeys(shard, reachedMs(shard), keysPerTrim)) >= keysPerTrim);
    if (this.#isOurs(shard, epoch)) await journal.trim(shard, epoch, throughSeq);
  }

  #isOurs(shard: ShardId, epoch: Epoch): boolean {
    return !this.#stopped && this.#ports.isOurs(shard, epoch);
  }
}

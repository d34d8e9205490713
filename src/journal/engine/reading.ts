/** Reading a shard's log page by page, each record checked against the one before (J3). */
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { LogPage } from "./engine-log.ts";
import type { LogRecord, Seq } from "#journal/journal.ts";
import { decodeRecord } from "#journal/record.ts";

/**
 * Each page comes with the base of the log at the time it was read, so that trimming in between is distinguished from
 * loss.
 */
export async function* readLog(
  shard: ShardId,
  fromSeq: Seq,
  page: (fromSeq: Seq) => Promise<LogPage>,
): AsyncGenerator<LogRecord> {
  if (!Number.isSafeInteger(fromSeq) || fromSeq < 1) throw new Fault("invalid", "read log", { shard, fromSeq });
  // Start one record earlier than asked, for the link of the first one.
  let next = Math.max(1, fromSeq - 1);
  let before: { readonly epoch: number; readonly hash: number } | undefined;
  for (;;) {
    const { base, rows, more } = await page(next);
    const wanted = Math.max(next, fromSeq);
    if (base.seq >= wanted)
      throw new Fault("not-found", "read log", { why: "trimmed", shard, seq: wanted, base: base.seq });
    if (base.seq === fromSeq - 1 && before === undefined) {
      before = base;
      next = fromSeq;
    }
    for (const { seq, record } of rows) {
      if (seq !== next) throw gap(shard, next, seq);
      const decoded = decodeRecord(record, { kind: "batch", shard, seq, link: before?.hash });
      if (before && decoded.epoch < before.epoch)
        throw new Fault("corrupt", "read log", { why: "epoch fell", shard, seq, epoch: decoded.epoch });
      before = decoded;
      next = seq + 1;
      if (seq >= fromSeq) yield { seq, epoch: decoded.epoch, payload: decoded.payload };
    }
    if (!more) break;
  }
  // Also if the log ends before the position at which the reader expected it to continue.
  if (next < fromSeq) throw gap(shard, next, undefined);
}

const gap = (shard: ShardId, missing: Seq, found: Seq | undefined): Fault =>
  new Fault("corrupt", "read log", { why: "record missing", shard, missing, found });

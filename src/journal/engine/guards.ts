/** Conditions that every store checks with the same error texts. */
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Batch, Epoch, Segment, Seq, Tail } from "#journal/journal.ts";
import type { ShardRow } from "./tables.ts";

export function checkCurrent(doing: string, row: Pick<ShardRow, "shard" | "epoch">, epoch: Epoch): void {
  if (row.epoch !== epoch) throw new Fault("stale", doing, { shard: row.shard, epoch, current: row.epoch });
}

/** At most one batch per shard: the second could not be checked before the first is written. */
export function checkBatches(batches: readonly Pick<Batch, "shard" | "epoch" | "seq">[]): void {
  for (const { shard, epoch, seq } of batches)
    if (!isCount(shard) || !isCount(epoch) || !isCount(seq) || seq === 0)
      throw new Fault("invalid", "append", { why: "not a position in a log", shard, epoch, seq });
  if (batches.length > 1 && new Set(batches.map(({ shard }) => shard)).size !== batches.length)
    throw new Fault("invalid", "append", { why: "two batches of one shard" });
}

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

export const notNext = (shard: ShardId, seq: Seq, tailSeq: Seq | undefined): Fault =>
  new Fault("invalid", "append", { why: "not the next seq", shard, seq, tail: tailSeq });

export const unknownShard = (doing: string, shard: ShardId): Fault =>
  new Fault("not-found", doing, { why: "no such shard", shard });

/** The log must reach at least as far as everything derived from it; this detects a log that was cut short (J3). */
export function checkTail(row: ShardRow, tail: Tail): Tail {
  if (tail.seq < row.snapshotSeq || tail.seq < row.baseSeq)
    throw new Fault("corrupt", "read tail", {
      why: "the log ends before its snapshot",
      shard: row.shard,
      tail: tail.seq,
      snapshot: row.snapshotSeq,
    });
  return tail;
}

export function checkSnapshot(row: ShardRow, at: { readonly epoch: Epoch; readonly seq: Seq }, tail: Tail): void {
  checkCurrent("save snapshot", row, at.epoch);
  const facts = { shard: row.shard, seq: at.seq, tail: tail.seq, newest: row.snapshotSeq };
  if (at.seq > tail.seq) throw new Fault("invalid", "save snapshot", { ...facts, why: "ahead of the log" });
  if (at.seq < row.snapshotSeq) throw new Fault("invalid", "save snapshot", { ...facts, why: "older than the newest" });
}

/** Segments follow one another without gaps; recording one again changes nothing. True if it is new. */
export function checkSegment(
  segment: Segment,
  { known, baseSeq, tailSeq }: { readonly known: readonly Segment[]; readonly baseSeq: Seq; readonly tailSeq: Seq },
): boolean {
  const same = known.find(({ fromSeq }) => fromSeq === segment.fromSeq);
  if (same && same.throughSeq === segment.throughSeq && same.digest === segment.digest) return false;
  const next = (known.at(-1)?.throughSeq ?? baseSeq) + 1;
  const { shard, fromSeq, throughSeq } = segment;
  if (fromSeq !== next || throughSeq < fromSeq || throughSeq > tailSeq)
    throw new Fault("invalid", "record segment", { shard, fromSeq, throughSeq, next, tail: tailSeq });
  return true;
}

/** J5: trim only what snapshot, archive and history have passed. */
export function checkTrim(
  shard: ShardId,
  throughSeq: Seq,
  passed: { readonly snapshot: Seq; readonly archive: Seq; readonly history: Seq },
): void {
  if (throughSeq > passed.snapshot || throughSeq > passed.archive || throughSeq > passed.history)
    throw new Fault("invalid", "trim log", { shard, throughSeq, ...passed });
}

/** The log: appending, reading, archiving, trimming, and the request keys bound with it. */
import type { ShardId } from "#base/ids.ts";
import { shardRow, verifiedTail } from "./engine-rows.ts";
import * as guards from "./guards.ts";
import type * as port from "#journal/journal.ts";
import { decodeRecord, peekRecord, sealRecord } from "#journal/record.ts";
import { baseOf, type StoredRecord, type Tables } from "./tables.ts";

/** A batch as an encoded record that has no link yet; see `encodeUnlinked`. */
export type UnlinkedBatch = { readonly record: Uint8Array; readonly keys: readonly port.RequestKey[] };
export type Bound = { readonly shard: ShardId; readonly epoch: port.Epoch };
export type LogPage = { readonly base: port.Tail; readonly rows: readonly StoredRecord[]; readonly more: boolean };

export function logOver(tables: Tables) {
  return {
    append(storeNowMs: number, batches: readonly UnlinkedBatch[]): port.AppendResult {
      const laid = batches.map((batch) => ({ ...batch, ...peekRecord(batch.record) }));
      guards.checkBatches(laid);
      const links = laid.map(({ shard, epoch, seq }) => {
        const row = shardRow(tables, "append", shard);
        if (row.epoch !== epoch) return undefined;
        const tail = tables.newest(shard) ?? baseOf(row);
        if (tail.seq !== seq - 1) throw guards.notNext(shard, seq, tail.seq);
        return tail.hash;
      });
      const outcomes = laid.map(({ shard, epoch, seq, record, keys }, i) => {
        const link = links[i];
        if (link === undefined) return "fenced";
        tables.putRecord(shard, { epoch, seq, hash: sealRecord(record, link) }, record);
        for (const key of keys) tables.putKey(shard, key);
        return "appended";
      });
      return { outcomes, storeNowMs };
    },

    confirm: (_nowMs: number, owned: readonly Bound[]): boolean[] =>
      owned.map(({ shard, epoch }) => tables.shard(shard)?.epoch === epoch),

    tail: (_nowMs: number, shard: ShardId): port.Tail => verifiedTail(tables, shardRow(tables, "read tail", shard)),

    page(_nowMs: number, shard: ShardId, fromSeq: port.Seq, bytesMax: number): LogPage {
      const base = baseOf(shardRow(tables, "read log", shard));
      const rows = tables.page(shard, fromSeq, bytesMax);
      const last = rows.at(-1);
      return { base, rows, more: last !== undefined && last.seq < (tables.newest(shard)?.seq ?? 0) };
    },

    recordSegment(_nowMs: number, segment: port.Segment, epoch: port.Epoch): void {
      const row = shardRow(tables, "record segment", segment.shard);
      guards.checkCurrent("record segment", row, epoch);
      const known = tables.segments(segment.shard);
      const tailSeq = verifiedTail(tables, row).seq;
      if (guards.checkSegment(segment, { known, baseSeq: row.baseSeq, tailSeq })) tables.putSegment(segment);
    },

    segments: (_nowMs: number, shard: ShardId): readonly port.Segment[] => tables.segments(shard),

    /**
     * Trims at most `recordsMax` records at a time, so that appends wait little; returns how far the log is trimmed
     * now.
     */
    trim(
      _nowMs: number,
      bound: Bound,
      wanted: { readonly throughSeq: port.Seq; readonly history: port.Seq; readonly recordsMax: number },
    ): port.Seq {
      const { shard, epoch } = bound;
      const row = shardRow(tables, "trim log", shard);
      guards.checkCurrent("trim log", row, epoch);
      const archive = tables.segments(shard).at(-1)?.throughSeq ?? 0;
      guards.checkTrim(shard, wanted.throughSeq, { snapshot: row.snapshotSeq, archive, history: wanted.history });
      const seq = Math.min(wanted.throughSeq, row.baseSeq + wanted.recordsMax);
      if (seq <= row.baseSeq) return row.baseSeq;
      const record = tables.record(shard, seq) ?? new Uint8Array();
      const last = decodeRecord(record, { kind: "batch", shard, seq, link: undefined });
      tables.putShard({ ...row, baseSeq: seq, baseEpoch: last.epoch, baseHash: last.hash });
      tables.dropRecords(shard, seq);
      return seq;
    },

    findKeys: (_: number, shard: ShardId, keys: readonly string[], atMs: number): port.RequestKey[] =>
      keys.flatMap((key) => tables.key(shard, key) ?? []).filter(({ retainedUntilMs }) => retainedUntilMs > atMs),

    trimKeys: (_: number, shard: ShardId, atMs: number, limit: number): number => tables.dropKeys(shard, atMs, limit),
  };
}

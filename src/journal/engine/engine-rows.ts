import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import { checkTail, unknownShard } from "./guards.ts";
import type { Cluster, Tail } from "#journal/journal.ts";
import { decodeRecord } from "#journal/record.ts";
import { baseOf, type ShardRow, type Tables } from "./tables.ts";

export function shardRow(tables: Tables, doing: string, shard: ShardId): ShardRow {
  const row = tables.shard(shard);
  if (!row) throw unknownShard(doing, shard);
  return row;
}

export function clusterRow(tables: Tables): Cluster {
  const row = tables.cluster();
  if (!row) throw notOpened();
  return row;
}

export const notOpened = (): Fault => new Fault("not-found", "read cluster", { why: "the store has not been opened" });

export function verifiedTail(tables: Tables, row: ShardRow): Tail {
  const { shard } = row;
  const newest = tables.newest(shard);
  if (!newest) return checkTail(row, baseOf(row));
  const record = tables.record(shard, newest.seq) ?? new Uint8Array();
  const { epoch, seq, hash } = decodeRecord(record, { kind: "batch", shard, seq: newest.seq, link: undefined });
  return checkTail(row, { epoch, seq, hash });
}

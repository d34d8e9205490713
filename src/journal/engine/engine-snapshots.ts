import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import { shardRow, verifiedTail } from "./engine-rows.ts";
import * as guards from "./guards.ts";
import type * as port from "#journal/journal.ts";
import type { ChunkRow, ShardRow, Tables } from "./tables.ts";

export type SnapshotAt = { readonly epoch: port.Epoch; readonly seq: port.Seq };
/** Where the newest complete snapshot is; `hash` is that of its last chunk. */
export type Pointer = SnapshotAt & { readonly id: number; readonly chunks: number; readonly hash: number };

export function snapshotsOver(tables: Tables) {
  return {
    snapshotBegin(_nowMs: number, shard: ShardId, at: SnapshotAt): number {
      const row = shardRow(tables, "save snapshot", shard);
      guards.checkSnapshot(row, at, verifiedTail(tables, row));
      const begun = attempted(row);
      tables.putShard(begun);
      return begun.attemptId;
    },

    snapshotPut(_nowMs: number, at: ChunkRow, record: Uint8Array): void {
      const row = shardRow(tables, "save snapshot", at.shard);
      if (row.attemptId !== at.snapshot) throw overtaken(at.shard);
      tables.putChunk(at, record);
    },

    snapshotCommit(_nowMs: number, shard: ShardId, pointer: Pointer): void {
      const row = shardRow(tables, "save snapshot", shard);
      guards.checkSnapshot(row, pointer, verifiedTail(tables, row));
      if (row.attemptId !== pointer.id) throw overtaken(shard);
      tables.putShard(pointedAt(row, pointer));
    },

    snapshotSweep(_nowMs: number, shard: ShardId, limit: number): number {
      const row = shardRow(tables, "sweep snapshots", shard);
      return tables.dropChunks(shard, [row.snapshotId, row.attemptId], limit);
    },

    snapshotPointer: (_nowMs: number, shard: ShardId): Pointer | undefined =>
      pointerOf(shardRow(tables, "load snapshot", shard)),

    snapshotChunk: (_nowMs: number, at: ChunkRow): Uint8Array | undefined => tables.chunk(at),
  };
}

export const attempted = (row: ShardRow): ShardRow => ({ ...row, attemptId: row.attemptId + 1 });

export function pointerOf(row: ShardRow): Pointer | undefined {
  if (row.snapshotId === 0) return undefined;
  const { snapshotId: id, snapshotEpoch: epoch, snapshotSeq: seq, snapshotChunks: chunks, snapshotHash: hash } = row;
  return { id, epoch, seq, chunks, hash };
}

export const pointedAt = (row: ShardRow, pointer: Pointer): ShardRow => ({
  ...row,
  snapshotId: pointer.id,
  snapshotSeq: pointer.seq,
  snapshotEpoch: pointer.epoch,
  snapshotChunks: pointer.chunks,
  snapshotHash: pointer.hash,
});

export const overtaken = (shard: ShardId): Fault =>
  new Fault("stale", "save snapshot", { why: "another snapshot was begun since", shard });

/** What a store keeps, row by row: the layer below `engine.ts`. Every call is made inside one transaction. */
import type { ShardId } from "#base/ids.ts";
import type { Cluster, Epoch, NodeId, NodeRow, RequestKey, Segment, Seq, Tail } from "#journal/journal.ts";

export type ShardRow = {
  readonly shard: ShardId;
  readonly epoch: Epoch;
  readonly owner: NodeId | null;
  readonly leaseUntilMs: number;
  readonly reservedFor: NodeId | null;
  readonly reservedUntilMs: number;
  /** The newest trimmed record: the log begins after it, and its hash is the first record's link. */
  readonly baseSeq: Seq;
  readonly baseEpoch: Epoch;
  readonly baseHash: number;
  /** 0: there is no snapshot. */
  readonly snapshotId: number;
  readonly snapshotSeq: Seq;
  readonly snapshotEpoch: Epoch;
  readonly snapshotChunks: number;
  /** Hash of the last chunk, which covers all chunks through the chain. */
  readonly snapshotHash: number;
  /** The newest attempt to save a snapshot. A chunk whose id is neither this nor `snapshotId` is an orphan. */
  readonly attemptId: number;
};

export const freshShard = (shard: ShardId): ShardRow => ({
  shard,
  epoch: 0,
  owner: null,
  leaseUntilMs: 0,
  reservedFor: null,
  reservedUntilMs: 0,
  baseSeq: 0,
  baseEpoch: 0,
  baseHash: 0,
  snapshotId: 0,
  snapshotSeq: 0,
  snapshotEpoch: 0,
  snapshotChunks: 0,
  snapshotHash: 0,
  attemptId: 0,
});

export const baseOf = (row: ShardRow): Tail => ({ epoch: row.baseEpoch, seq: row.baseSeq, hash: row.baseHash });

export type SeenRow = NodeRow & { readonly seenAtMs: number; readonly ttlMs: number };
export type StoredRecord = { readonly seq: Seq; readonly record: Uint8Array };
export type ChunkRow = { readonly shard: ShardId; readonly snapshot: number; readonly index: number };

export type Tables = {
  cluster(): Cluster | undefined;
  putCluster(row: Cluster): void;

  shard(shard: ShardId): ShardRow | undefined;
  shards(): readonly ShardRow[];
  putShard(row: ShardRow): void;

  /** The newest record by its columns, unverified: enough to append the next one. */
  newest(shard: ShardId): Tail | undefined;
  record(shard: ShardId, seq: Seq): Uint8Array | undefined;
  /** From `fromSeq` on, in order, up to about `bytesMax`; at least one record if there is one. */
  page(shard: ShardId, fromSeq: Seq, bytesMax: number): readonly StoredRecord[];
  putRecord(shard: ShardId, at: Tail, record: Uint8Array): void;
  dropRecords(shard: ShardId, throughSeq: Seq): void;

  key(shard: ShardId, key: string): RequestKey | undefined;
  putKey(shard: ShardId, key: RequestKey): void;
  dropKeys(shard: ShardId, untilMs: number, limit: number): number;

  chunk(at: ChunkRow): Uint8Array | undefined;
  putChunk(at: ChunkRow, record: Uint8Array): void;
  /** Drops at most `limit` chunks that belong to neither snapshot; returns how many. */
  dropChunks(shard: ShardId, keep: readonly [number, number], limit: number): number;

  /** In order of `fromSeq`. */
  segments(shard: ShardId): readonly Segment[];
  putSegment(segment: Segment): void;

  nodes(): readonly SeenRow[];
  putNode(row: SeenRow): void;
  dropNodes(seenBeforeMs: number): void;
};

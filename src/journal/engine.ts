/**
 * The journal's rules over a store that answers at once (memory, SQLite). Each operation runs inside one write
 * transaction and looks before it writes: a Fault leaves no trace.
 */
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import * as guards from "./guards.ts";
import type * as port from "./journal.ts";
import * as lease from "./ownership.ts";
import { decodeRecord, peekRecord, sealRecord } from "./record.ts";
import { baseOf, freshShard, type ChunkRow, type ShardRow, type StoredRecord, type Tables } from "./tables.ts";

/** A batch as a laid record, not yet on the chain; see `layRecord`. */
export type LaidBatch = { readonly record: Uint8Array; readonly keys: readonly port.RequestKey[] };
export type Bound = { readonly shard: ShardId; readonly epoch: port.Epoch };
export type LogPage = { readonly base: port.Tail; readonly rows: readonly StoredRecord[]; readonly more: boolean };
export type SnapshotAt = { readonly epoch: port.Epoch; readonly seq: port.Seq };
export type Pointer = SnapshotAt & { readonly id: number; readonly chunks: number; readonly hash: number };
export type Successor = { readonly node: port.NodeId; readonly reservedMs: number };

export type Engine = ReturnType<typeof engineOver>;

const nodeForgottenMs = 24 * 3600_000;

export function engineOver(tables: Tables) {
  const shardRow = (doing: string, shard: ShardId): ShardRow => {
    const row = tables.shard(shard);
    if (!row) throw guards.unknownShard(doing, shard);
    return row;
  };
  const clusterRow = (): port.Cluster => {
    const row = tables.cluster();
    if (!row) throw new Fault("not-found", "read cluster", { why: "the store has not been opened" });
    return row;
  };
  const verifiedTail = (row: ShardRow): port.Tail => {
    const { shard } = row;
    const newest = tables.newest(shard);
    if (!newest) return guards.checkTail(row, baseOf(row));
    const record = tables.record(shard, newest.seq) ?? new Uint8Array();
    const { epoch, seq, hash } = decodeRecord(record, { kind: "batch", shard, seq: newest.seq, link: undefined });
    return guards.checkTail(row, { epoch, seq, hash });
  };

  return {
    open(_nowMs: number, wanted: { readonly shards: number; readonly clusterId: string }): port.Cluster {
      const known = tables.cluster();
      if (known) return known;
      const created = { ...wanted, featureLevel: 0 };
      tables.putCluster(created);
      for (let shard = 0; shard < wanted.shards; shard += 1) tables.putShard(freshShard(shard));
      return created;
    },

    cluster: (_nowMs: number): port.Cluster => clusterRow(),

    append(storeNowMs: number, batches: readonly LaidBatch[]): port.AppendResult {
      const laid = batches.map((batch) => ({ ...batch, ...peekRecord(batch.record) }));
      guards.checkBatches(laid);
      const links = laid.map(({ shard, epoch, seq }) => {
        const row = shardRow("append", shard);
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

    tail: (_nowMs: number, shard: ShardId): port.Tail => verifiedTail(shardRow("read tail", shard)),

    page(_nowMs: number, shard: ShardId, fromSeq: port.Seq, bytesMax: number): LogPage {
      const base = baseOf(shardRow("read log", shard));
      const rows = tables.page(shard, fromSeq, bytesMax);
      const last = rows.at(-1);
      return { base, rows, more: last !== undefined && last.seq < (tables.newest(shard)?.seq ?? 0) };
    },

    snapshotBegin(_nowMs: number, shard: ShardId, at: SnapshotAt): number {
      const row = shardRow("save snapshot", shard);
      guards.checkSnapshot(row, at, verifiedTail(row));
      const attemptId = Math.max(row.attemptId, row.snapshotId) + 1;
      tables.putShard({ ...row, attemptId });
      return attemptId;
    },

    snapshotPut(_nowMs: number, at: ChunkRow, record: Uint8Array): void {
      const row = shardRow("save snapshot", at.shard);
      if (row.attemptId !== at.snapshot) throw overtaken(at.shard);
      tables.putChunk(at, record);
    },

    snapshotCommit(_nowMs: number, shard: ShardId, pointer: Pointer): void {
      const row = shardRow("save snapshot", shard);
      guards.checkSnapshot(row, pointer, verifiedTail(row));
      if (row.attemptId !== pointer.id) throw overtaken(shard);
      tables.putShard({
        ...row,
        snapshotId: pointer.id,
        snapshotSeq: pointer.seq,
        snapshotEpoch: pointer.epoch,
        snapshotChunks: pointer.chunks,
        snapshotHash: pointer.hash,
      });
    },

    snapshotSweep(_nowMs: number, shard: ShardId, limit: number): number {
      const row = shardRow("sweep snapshots", shard);
      return tables.dropChunks(shard, [row.snapshotId, row.attemptId], limit);
    },

    snapshotPointer(_nowMs: number, shard: ShardId): Pointer | undefined {
      const row = shardRow("load snapshot", shard);
      if (row.snapshotId === 0) return undefined;
      const {
        snapshotId: id,
        snapshotEpoch: epoch,
        snapshotSeq: seq,
        snapshotChunks: chunks,
        snapshotHash: hash,
      } = row;
      return { id, epoch, seq, chunks, hash };
    },

    snapshotChunk: (_nowMs: number, at: ChunkRow): Uint8Array | undefined => tables.chunk(at),

    recordSegment(_nowMs: number, segment: port.Segment, epoch: port.Epoch): void {
      const row = shardRow("record segment", segment.shard);
      guards.checkCurrent("record segment", row, epoch);
      const known = tables.segments(segment.shard);
      const tailSeq = verifiedTail(row).seq;
      if (guards.checkSegment(segment, { known, baseSeq: row.baseSeq, tailSeq })) tables.putSegment(segment);
    },

    segments: (_nowMs: number, shard: ShardId): readonly port.Segment[] => tables.segments(shard),

    /** At most `recordsMax` at a time, so that appends wait little; answers how far the log is trimmed now. */
    trim(
      _nowMs: number,
      bound: Bound,
      wanted: { readonly throughSeq: port.Seq; readonly history: port.Seq; readonly recordsMax: number },
    ): port.Seq {
      const { shard, epoch } = bound;
      const row = shardRow("trim log", shard);
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

    findKeys: (nowMs: number, shard: ShardId, keys: readonly string[]): port.RequestKey[] =>
      keys.flatMap((key) => tables.key(shard, key) ?? []).filter(({ retainedUntilMs }) => retainedUntilMs > nowMs),

    trimKeys: (nowMs: number, shard: ShardId, limit: number): number => tables.dropKeys(shard, nowMs, limit),

    acquire(nowMs: number, shard: ShardId, wanted: lease.Wanted): port.Acquired {
      const taken = lease.acquireLease(shardRow("acquire shard", shard), wanted, clusterRow(), nowMs);
      if (taken.row) tables.putShard(taken.row);
      return taken.answer;
    },

    renew(storeNowMs: number, node: port.NodeId, held: readonly Bound[], leaseMs: number) {
      const renewed = held.flatMap(({ shard, epoch }) => {
        const row = lease.renewLease(shardRow("renew lease", shard), { node, epoch, leaseMs }, storeNowMs);
        return row ?? [];
      });
      for (const row of renewed) tables.putShard(row);
      return { held: renewed.map(({ shard }) => shard), storeNowMs };
    },

    release(nowMs: number, { shard, epoch }: Bound, successor?: Successor): void {
      const row = lease.releaseLease(shardRow("release shard", shard), epoch, successor, nowMs);
      if (row) tables.putShard(row);
    },

    ownerships: (nowMs: number): port.Ownership[] => lease.ownershipsOf(tables.shards(), tables.nodes(), nowMs),

    announce: (seenAtMs: number, row: port.NodeRow, ttlMs: number): void => tables.putNode({ ...row, seenAtMs, ttlMs }),

    nodes: (nowMs: number): port.NodeSeen[] => tables.nodes().map((row) => lease.seen(row, nowMs)),

    raiseFeatureLevel(nowMs: number): number {
      const cluster = clusterRow();
      const nodes = tables.nodes().map((row) => lease.seen(row, nowMs));
      const featureLevel = lease.raisedLevel(cluster.featureLevel, nodes);
      if (featureLevel !== cluster.featureLevel) tables.putCluster({ ...cluster, featureLevel });
      tables.dropNodes(nowMs - nodeForgottenMs);
      return featureLevel;
    },
  };
}

const overtaken = (shard: ShardId): Fault =>
  new Fault("stale", "save snapshot", { why: "another one was begun since", shard });

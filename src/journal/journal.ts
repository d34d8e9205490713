/**
 * The journal: it makes a shard's events durable, and decides which node owns a shard.
 *
 * J1 An append is accepted only under the shard's current epoch (K8), at exactly the next seq.
 * J2 What append acknowledged is there after any crash, and after a fail-over to a standby that commits wait for (K7);
 * what it refused never appears. What `tail`, `confirm` and `cluster` answer has the same durability.
 * J3 A reader sees the records of a shard in order, without gaps, each with its checksum and its link to the one before
 * verified; anything else is a Fault "corrupt", never a shorter answer.
 * J4 Leases are judged by the store's own clock. An epoch only grows, also through release and a new store clock.
 * J5 Log records are trimmed only up to where a snapshot, an archived segment and the history cursor have all passed.
 *
 * Faults: "unavailable" = certainly not done; "unknown-outcome" = it may have been done, ask `tail`; "corrupt" = what
 * was read is not what was written; "stale" = the epoch is no longer current.
 */
import type { Entries } from "#base/entries.ts";
import type { AttemptRow, HistoryRows, JobRow, StageRow, StepRow, TaskRow } from "#base/history-rows.ts";
import type { ShardId } from "#base/ids.ts";
import type { RecordStore } from "#records/records.ts";

export type NodeId = string;
export type Epoch = number;
/** Numbers the batches of a shard from 1, without gaps. */
export type Seq = number;

/** One shard's part of an append: the events decided since the last one. */
export type Batch = {
  readonly shard: ShardId;
  readonly epoch: Epoch;
  readonly seq: Seq;
  /** The encoded events. Opaque to the journal. */
  readonly payload: Uint8Array;
  /** Request keys that this batch binds (K1), durable with it. */
  readonly keys: readonly RequestKey[];
};

export type RequestKey = {
  /** Tenant, door and key in one string; unique within the shard. */
  readonly key: string;
  readonly job: number;
  readonly payloadHash: string;
  /** On the store's clock; the key is found at least until then. */
  readonly retainedUntilMs: number;
};

export type LogRecord = { readonly seq: Seq; readonly epoch: Epoch; readonly payload: Uint8Array };

/** The newest record, to settle an append whose outcome is unknown. `hash` is `recordHash` of that record. */
export type Tail = { readonly epoch: Epoch; readonly seq: Seq; readonly hash: number };

export type AppendResult = {
  /** One entry per batch, in the order given; a fenced batch left no trace, the others are durable. */
  readonly outcomes: readonly ("appended" | "fenced")[];
  readonly storeNowMs: number;
};

export type Snapshot = { readonly seq: Seq; readonly epoch: Epoch; readonly chunks: AsyncIterable<Uint8Array> };

export type Acquired =
  | { readonly kind: "acquired"; readonly epoch: Epoch; readonly storeNowMs: number }
  | {
      readonly kind: "held";
      readonly by: NodeId;
      readonly epoch: Epoch;
      readonly remainingMs: number;
      readonly storeNowMs: number;
    }
  /** The node is older than the cluster's feature level (or the shard is reserved for a named successor). */
  | { readonly kind: "refused"; readonly why: string; readonly storeNowMs: number };

export type Ownership = {
  readonly shard: ShardId;
  /** Grows with every change of owner; 0 if the shard never had an owner. */
  readonly epoch: Epoch;
  readonly owner: NodeId | undefined;
  /** Where the owner listens, as it announced itself. */
  readonly address: string | undefined;
  /** Negative when the lease has expired. */
  readonly remainingMs: number;
  /** The shard's database did not answer: the rest is as it was last seen, or unknown. */
  readonly unseen?: boolean;
};

/** Shards of one database share commits, and are lost and come back together. */
export type Partition = { readonly databases: number; databaseOf(shard: ShardId): number };

export type NodeRow = {
  readonly node: NodeId;
  readonly address: string;
  /** The newest feature level that this program can read and write. */
  readonly features: number;
  readonly state: "up" | "leaving";
  /** Small facts for people: version, pid, start time, load. */
  readonly facts: Readonly<Record<string, string | number>>;
};

export type NodeSeen = NodeRow & { readonly seenAgoMs: number; readonly alive: boolean };

export type Cluster = {
  readonly clusterId: string;
  /** The fixed number of virtual shards, set when the store was created. */
  readonly shards: number;
  /** New kinds of event may be written up to this level: the lowest that all live members can read. Never falls. */
  readonly featureLevel: number;
};

export type Segment = {
  readonly shard: ShardId;
  readonly fromSeq: Seq;
  readonly throughSeq: Seq;
  readonly digest: string;
  readonly sizeBytes: number;
};

export type Journal = {
  /** Left out where there is one database. */
  readonly partition?: Partition;

  /** Creates the store's tables and the cluster's fixed facts when they are not there; otherwise reads them. */
  open(wanted: { readonly shards: number; readonly clusterId: string }): Promise<Cluster>;
  cluster(): Promise<Cluster>;

  /**
   * At most one batch per shard. A batch with an outdated epoch is fenced alone. A batch under the current epoch that
   * is not the next one is a Fault "invalid", and nothing of the call is done. Concurrent calls may share a commit.
   */
  append(batches: readonly Batch[]): Promise<AppendResult>;
  /** Whether each (shard, epoch) is still current; one round trip for all. */
  confirm(owned: readonly { readonly shard: ShardId; readonly epoch: Epoch }[]): Promise<readonly boolean[]>;
  /**
   * All 0 for an empty log. After an append of unknown outcome the answer is final: that append cannot take effect
   * later.
   */
  tail(shard: ShardId): Promise<Tail>;
  /** Nothing if `fromSeq` is right after the tail, "corrupt" beyond that, "not-found" where it has been trimmed. */
  read(shard: ShardId, fromSeq: Seq): AsyncIterable<LogRecord>;

  /**
   * The snapshot contains the effect of every batch up to `seq`. It replaces the older one when all of it is durable.
   * Chunks are read back as they were given; a few hundred KiB each keeps appends from waiting. Fenced by `epoch`.
   */
  saveSnapshot(
    shard: ShardId,
    at: { readonly epoch: Epoch; readonly seq: Seq },
    chunks: AsyncIterable<Uint8Array>,
  ): Promise<void>;
  loadSnapshot(shard: ShardId): Promise<Snapshot | undefined>;

  /** Segments follow one another without gaps; recording one again changes nothing. */
  recordSegment(segment: Segment, epoch: Epoch): Promise<void>;
  segments(shard: ShardId): Promise<readonly Segment[]>;
  /** Refused ("invalid") unless snapshot, archive and history cursor have all passed `throughSeq` (J5). */
  trim(shard: ShardId, epoch: Epoch, throughSeq: Seq): Promise<void>;

  /**
   * The keys that are bound and still retained at `atMs`. That is the shard's own time: the store's clock may jump, and
   * a key must not be free here while the shard's owner counts it as bound (K1, K11).
   */
  findKeys(shard: ShardId, keys: readonly string[], atMs: number): Promise<readonly RequestKey[]>;
  /**
   * Deletes keys whose retention had expired at `atMs`, the shard's time; at most `limit` per call; returns how many.
   */
  trimKeys(shard: ShardId, atMs: number, limit: number): Promise<number>;

  /** A node that already has the shard gets a new epoch: its earlier process is fenced. */
  acquire(
    shard: ShardId,
    node: NodeId,
    wanted: { readonly leaseMs: number; readonly features: number },
  ): Promise<Acquired>;
  /** Extends the leases that this node still holds, including expired ones that no other node took; returns those. */
  renew(
    node: NodeId,
    held: readonly { readonly shard: ShardId; readonly epoch: Epoch }[],
    leaseMs: number,
  ): Promise<{ readonly held: readonly ShardId[]; readonly storeNowMs: number }>;
  /**
   * Ends the lease at once and increments the epoch, so that an append still in flight is fenced. For `reservedMs` only
   * the named successor may take the shard, so that a hand-over is not a race. Releasing an outdated epoch changes
   * nothing.
   */
  release(
    shard: ShardId,
    epoch: Epoch,
    successor?: { readonly node: NodeId; readonly reservedMs: number },
  ): Promise<void>;
  ownerships(): Promise<readonly Ownership[]>;

  announce(row: NodeRow, ttlMs: number): Promise<void>;
  nodes(): Promise<readonly NodeSeen[]>;
  /** Raises the cluster's level to the lowest level of its live members, never lowers it; returns the level now. */
  raiseFeatureLevel(): Promise<number>;

  /** What this store promises, printed at start: engine, durability, replication. */
  describe(): Promise<{ readonly kind: string; readonly durable: boolean; readonly notes: readonly string[] }>;

  readonly history: History;
  /** Small values that all nodes share for a while (EN1-EN3). */
  readonly entries: Entries;
  /** Named documents that all nodes share (RC1-RC5). */
  readonly records: RecordStore;
  close(): Promise<void>;
};

/**
 * What has ended, for people to look through: tables written after the log and never read by a decision. Rows are
 * upserts by their key, so writing a batch again changes nothing.
 */
export type History = {
  /**
   * Writes the rows and moves the cursor to `throughSeq`, in one transaction, durable when it resolves: then the rows'
   * jobs may be forgotten in memory. Fenced like an append. Rows before the cursor exist already and are not written
   * again; those at the cursor are.
   */
  record(shard: ShardId, at: { readonly epoch: Epoch; readonly throughSeq: Seq }, rows: HistoryRows): Promise<void>;
  /** The last batch whose rows are all written; 0 at first. */
  cursor(shard: ShardId): Promise<Seq>;
  /**
   * Moves the cursor back to 0, so that all rows can be written again; existing rows stay until they are overwritten.
   * Fenced like an append.
   */
  reset(shard: ShardId, epoch: Epoch): Promise<void>;
  job(shard: ShardId, job: number): Promise<JobHistory | undefined>;
  /** Newest first, by time of submission; at most 1,000 per page. `cursor` is the one that the last page returned. */
  jobs(
    query: JobFilter & { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<{ readonly jobs: readonly JobRow[]; readonly cursor: string | undefined }>;
  /** How many jobs have ended, by phase; `capped` if there are more than it goes through. */
  count(filter: JobFilter): Promise<EndedCount>;
  /** Deletes jobs that ended before the time, at most `limit`, earliest submitted first; returns how many. */
  trim(shard: ShardId, endedBeforeMs: number, limit: number): Promise<number>;
};

/** Which jobs are meant: all that is left out does not matter. */
export type JobFilter = {
  readonly tenant?: string | undefined;
  readonly door?: string | undefined;
  readonly phase?: string | undefined;
  /** With all of these. */
  readonly tags?: readonly { readonly name: string; readonly value: string }[] | undefined;
  /** Submitted from this time on, and before that one. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
};

export type EndedCount = {
  readonly phases: readonly { readonly phase: string; readonly jobs: number }[];
  readonly capped: boolean;
};

export type JobHistory = {
  readonly job: JobRow;
  readonly stages: readonly StageRow[];
  readonly tasks: readonly TaskRow[];
  readonly attempts: readonly AttemptRow[];
  readonly steps: readonly StepRow[];
  /** What a tracked job was submitted with, as JSON. */
  readonly submission?: string;
};

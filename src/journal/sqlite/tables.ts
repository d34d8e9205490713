/** The log's database: schema and rows. */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { Cluster, NodeRow, RequestKey, Segment } from "#journal/journal.ts";
import { createLogTables, logTables, splitLog } from "./log-tables.ts";
import { freshShard, type SeenRow, type ShardRow, type StoredRecord, type Tables } from "#journal/engine/tables.ts";

export const logVersion = 2;
export const logUpgrades = [splitLog];

export const logSchema = `
  create table cluster (one integer primary key check (one = 1), cluster_id text not null, shards integer not null,
    feature_level integer not null, clock_ms integer not null);
  create table shards (shard integer primary key, ${shardColumns()
    .filter((name) => name !== "shard")
    .map((name) => `"${name}" ${name === "owner" || name === "reservedFor" ? "text" : "integer not null"}`)
    .join(", ")});
  create table request_keys (shard integer not null, key text not null, job integer not null,
    payload_hash text not null, retained_until_ms real not null, primary key (shard, key)) without rowid;
  create index request_keys_age on request_keys (shard, retained_until_ms);
  create table chunks (shard integer not null, snapshot integer not null, "index" integer not null,
    record blob not null, primary key (shard, snapshot, "index"));
  create table segments (shard integer not null, from_seq integer not null, through_seq integer not null,
    digest text not null, size_bytes integer not null, primary key (shard, from_seq)) without rowid;
  create table nodes (node text primary key, row text not null, seen_at_ms real not null, ttl_ms real not null);
`;

export type ClockedTables = Tables & { clockMs(): number; putClock(ms: number): void };

export function sqliteTables(db: DatabaseSync): ClockedTables {
  const columns = shardColumns();
  const quoted = columns.map((name) => `"${name}"`);
  const one = <T>(sql: string): ((...args: SQLInputValue[]) => T | undefined) => {
    const statement = db.prepare(sql);
    return (...args) => statement.get(...args) as T | undefined;
  };
  const all = <T>(sql: string): ((...args: SQLInputValue[]) => T[]) => {
    const statement = db.prepare(sql);
    return (...args) => statement.all(...args) as T[];
  };
  const run = (sql: string): ((...args: SQLInputValue[]) => number) => {
    const statement = db.prepare(sql);
    return (...args) => Number(statement.run(...args).changes);
  };
  const keyColumns = `key, job, payload_hash as payloadHash, retained_until_ms as retainedUntilMs`;
  const q = {
    cluster: one<Cluster>(
      "select cluster_id as clusterId, shards, feature_level as featureLevel from cluster where one = 1",
    ),
    putCluster: run(`insert into cluster values (1, ?, ?, ?, 0) on conflict (one) do update
      set cluster_id = excluded.cluster_id, shards = excluded.shards, feature_level = excluded.feature_level`),
    clock: one<{ ms: number }>("select clock_ms as ms from cluster where one = 1"),
    putClock: run("update cluster set clock_ms = max(clock_ms, ?) where one = 1"),
    shard: one<ShardRow>(`select ${quoted.join(", ")} from shards where shard = ?`),
    shards: all<ShardRow>(`select ${quoted.join(", ")} from shards order by shard`),
    putShard: run(`replace into shards (${quoted.join(", ")}) values (${columns.map(() => "?").join(", ")})`),
    key: one<RequestKey>(`select ${keyColumns} from request_keys where shard = ? and key = ?`),
    putKey: run("replace into request_keys (shard, key, job, payload_hash, retained_until_ms) values (?, ?, ?, ?, ?)"),
    dropKeys: run(`delete from request_keys where shard = ?1 and key in
      (select key from request_keys where shard = ?1 and retained_until_ms <= ?2 limit ?3)`),
    chunk: one<StoredRecord>(`select record from chunks where shard = ? and snapshot = ? and "index" = ?`),
    putChunk: run(`replace into chunks (shard, snapshot, "index", record) values (?, ?, ?, ?)`),
    dropChunks: run(`delete from chunks where rowid in
      (select rowid from chunks where shard = ? and snapshot <> ? and snapshot <> ? limit ?)`),
    segments: all<Segment>(`select shard, from_seq as fromSeq, through_seq as throughSeq, digest,
      size_bytes as sizeBytes from segments where shard = ? order by from_seq`),
    putSegment: run("insert into segments values (?, ?, ?, ?, ?)"),
    nodes: all<{ row: string; seenAtMs: number; ttlMs: number }>(
      "select row, seen_at_ms as seenAtMs, ttl_ms as ttlMs from nodes",
    ),
    putNode: run("replace into nodes (node, row, seen_at_ms, ttl_ms) values (?, ?, ?, ?)"),
    dropNodes: run("delete from nodes where seen_at_ms < ?"),
  };

  return {
    cluster: () => q.cluster(),
    putCluster: (row) => {
      q.putCluster(row.clusterId, row.shards, row.featureLevel);
      createLogTables(db, row.shards);
    },
    clockMs: () => q.clock()?.ms ?? 0,
    putClock: (ms) => void q.putClock(ms),
    shard: (shard) => q.shard(shard),
    shards: () => q.shards(),
    putShard: (row) => void q.putShard(...columns.map((name) => row[name])),
    ...logTables(db),
    key: (shard, key) => q.key(shard, key),
    putKey: (shard, { key, job, payloadHash, retainedUntilMs }) =>
      void q.putKey(shard, key, job, payloadHash, retainedUntilMs),
    dropKeys: (shard, untilMs, limit) => q.dropKeys(shard, untilMs, limit),
    chunk: ({ shard, snapshot, index }) => q.chunk(shard, snapshot, index)?.record,
    putChunk: ({ shard, snapshot, index }, record) => void q.putChunk(shard, snapshot, index, record),
    dropChunks: (shard, keep, limit) => q.dropChunks(shard, ...keep, limit),
    segments: (shard) => q.segments(shard),
    putSegment: ({ shard, fromSeq, throughSeq, digest, sizeBytes }) =>
      void q.putSegment(shard, fromSeq, throughSeq, digest, sizeBytes),
    nodes: () => q.nodes().map(({ row, ...times }): SeenRow => ({ ...(JSON.parse(row) as NodeRow), ...times })),
    putNode: ({ seenAtMs, ttlMs, ...row }) => void q.putNode(row.node, JSON.stringify(row), seenAtMs, ttlMs),
    dropNodes: (seenBeforeMs) => void q.dropNodes(seenBeforeMs),
  };
}

function shardColumns(): readonly (keyof ShardRow)[] {
  return Object.keys(freshShard(0)) as (keyof ShardRow)[];
}

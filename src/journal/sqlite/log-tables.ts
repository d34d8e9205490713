/**
 * The log's records, one table per shard: a new record is always its table's last, which SQLite adds to the last page.
 * In one table for all shards it would be inserted between others, which moved rows across five pages, each of them
 * written twice.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { ShardId } from "#base/ids.ts";
import type { Tail } from "#journal/journal.ts";
import type { StoredRecord, Tables } from "#journal/engine/tables.ts";
import type { LogEnd } from "./tail-mark.ts";

export type LogTables = Pick<Tables, "newest" | "record" | "page" | "putRecord" | "dropRecords">;

export function createLogTables(db: DatabaseSync, shards: number): void {
  for (let shard = 0; shard < shards; shard += 1)
    db.exec(`create table if not exists ${tableOf(shard)}
      (seq integer primary key, epoch integer not null, hash integer not null, record blob not null)`);
}

/** Migrates the single table of version 1, with shard and seq in one integer. */
export function splitLog(db: DatabaseSync): void {
  const { shards = 0 } = (db.prepare("select shards from cluster").get() ?? {}) as { shards?: number };
  createLogTables(db, shards);
  for (let shard = 0; shard < shards; shard += 1)
    db.exec(`insert into ${tableOf(shard)} select id & 4398046511103, epoch, hash, record from log
      where id between (${shard} << 42) and ((${shard} << 42) | 4398046511103) order by id`);
  db.exec("drop table log");
}

export const tableOf = (shard: ShardId): string => `log_${Math.trunc(shard)}`;

type Statements = Readonly<Record<"newest" | "record" | "page" | "put" | "drop", StatementSync>>;

export function logTables(db: DatabaseSync): LogTables {
  const prepared = new Map<ShardId, Statements>();
  const of = (shard: ShardId): Statements => {
    const known = prepared.get(shard) ?? prepare(db, tableOf(shard));
    prepared.set(shard, known);
    return known;
  };
  return {
    newest: (shard) => of(shard).newest.get() as Tail | undefined,
    record: (shard, seq) => (of(shard).record.get(seq) as StoredRecord | undefined)?.record,
    page: (shard, fromSeq, bytesMax) => until(of(shard).page, fromSeq, bytesMax),
    putRecord: (shard, { seq, epoch, hash }, record) => void of(shard).put.run(seq, epoch, hash, record),
    dropRecords: (shard, throughSeq) => void of(shard).drop.run(throughSeq),
  };
}

/** Where each shard's log ends, for a database that may be damaged. */
export function logEnds(db: DatabaseSync): LogEnd {
  const base = db.prepare("select baseSeq as seq, baseEpoch as epoch, baseHash as hash from shards where shard = ?");
  const has = db.prepare("select 1 from sqlite_master where name = ?");
  const one = (shard: ShardId, rest: string): Tail | undefined =>
    has.get(tableOf(shard)) &&
    (db.prepare(`select seq, epoch, hash from ${tableOf(shard)} ${rest}`).get() as Tail | undefined);
  return {
    end: (shard) => one(shard, "order by seq desc limit 1") ?? (base.get(shard) as Tail | undefined),
    hash: (shard, seq) => one(shard, `where seq = ${Math.trunc(seq)}`)?.hash,
  };
}

const prepare = (db: DatabaseSync, table: string): Statements => ({
  newest: db.prepare(`select seq, epoch, hash from ${table} order by seq desc limit 1`),
  record: db.prepare(`select record from ${table} where seq = ?`),
  page: db.prepare(`select seq, record from ${table} where seq >= ? order by seq`),
  put: db.prepare(`insert into ${table} values (?, ?, ?, ?)`),
  drop: db.prepare(`delete from ${table} where seq <= ?`),
});

function until(statement: StatementSync, fromSeq: number, bytesMax: number): StoredRecord[] {
  const rows: StoredRecord[] = [];
  let sizeBytes = 0;
  for (const row of statement.iterate(fromSeq)) {
    const stored = row as StoredRecord;
    rows.push(stored);
    sizeBytes += stored.record.length;
    if (sizeBytes >= bytesMax) break;
  }
  return rows;
}

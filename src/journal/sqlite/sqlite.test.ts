import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { faults, own } from "#journal/testing/support.ts";
import { exerciseJournal } from "#journal/testing/exercise.ts";
import { flipped } from "#journal/memory/memory-tables.ts";
import { tableOf } from "./log-tables.ts";
import { sqliteJournal } from "./sqlite.ts";

exerciseJournal("in SQLite", async () => {
  const directory = join(await mkdtemp(join(tmpdir(), "millrace-journal-")), "store");
  let offsetMs = 0;
  const tampering = async (run: (db: DatabaseSync) => void): Promise<void> => {
    const db = new DatabaseSync(join(directory, "journal.db"), { timeout: 5000 });
    run(db);
    db.close();
  };
  const flip = (db: DatabaseSync, table: string, where: string, args: readonly number[], bit: number): void => {
    const { record } = db.prepare(`select record from ${table} where ${where}`).get(...args) as { record: Uint8Array };
    db.prepare(`update ${table} set record = ? where ${where}`).run(flipped(record, bit), ...args);
  };
  return {
    connect: async () => sqliteJournal({ directory, clockOffsetMs: () => offsetMs }),
    advance: (ms) => void (offsetMs += ms),
    tamper: {
      flipRecord: (shard, seq, bit) => tampering((db) => flip(db, tableOf(shard), "seq = ?", [seq], bit)),
      dropRecord: (shard, seq) =>
        tampering((db) => void db.prepare(`delete from ${tableOf(shard)} where seq = ?`).run(seq)),
      flipChunk: (shard, index, bit) =>
        tampering((db) => {
          const where = `shard = ? and "index" = ? and snapshot = (select "snapshotId" from shards where shard = ?)`;
          flip(db, "chunks", where, [shard, index, shard], bit);
        }),
    },
    destroy: () => rm(join(directory, ".."), { recursive: true }),
  };
});

const temporary = (): Promise<string> => mkdtemp(join(tmpdir(), "millrace-journal-"));

test("other users cannot read the files", async () => {
  const root = await temporary();
  const directory = join(root, "deep", "store");
  const journal = sqliteJournal({ directory });
  await journal.open({ shards: 1, clusterId: "private" });
  await journal.history.cursor(0);
  equal((await stat(directory)).mode & 0o777, 0o700);
  const files = await readdir(directory);
  ok(files.includes("journal.db") && files.includes("journal.db-wal") && files.includes("history.db"));
  for (const file of files) equal((await stat(join(directory, file))).mode & 0o777, 0o600, file);
  await journal.close();
  await rm(root, { recursive: true });
});

test("a database of a newer version is left alone; a file that is not a database is reported", async () => {
  const directory = await temporary();
  const journal = sqliteJournal({ directory });
  await journal.open({ shards: 1, clusterId: "x" });
  await journal.close();
  await faults(journal.cluster(), "unavailable");
  const db = new DatabaseSync(join(directory, "journal.db"));
  db.exec("pragma user_version = 99");
  db.close();
  const newer = sqliteJournal({ directory });
  await faults(newer.open({ shards: 1, clusterId: "x" }), "invalid");
  await newer.close();
  await writeFile(join(directory, "journal.db"), "not a database".repeat(1000));
  const damaged = sqliteJournal({ directory });
  await faults(damaged.open({ shards: 1, clusterId: "x" }), "corrupt");
  await damaged.close();
  await rm(directory, { recursive: true });
});

test("J4 the store's clock does not go back when the machine's did", async () => {
  const directory = await temporary();
  const aheadMs = 3600_000;
  const before = sqliteJournal({ directory, clockOffsetMs: () => aheadMs });
  await before.open({ shards: 1, clusterId: "x" });
  const { storeNowMs } = await before.acquire(0, "ada", { leaseMs: 1000, features: 1 });
  await before.close();
  const after = sqliteJournal({ directory });
  ok((await after.acquire(0, "ada", { leaseMs: 1000, features: 1 })).storeNowMs >= storeNowMs);
  await after.close();
  await rm(directory, { recursive: true });
});

test("J4 the store's clock is not behind a time that another process has seen on it", async () => {
  const directory = await temporary();
  const [slow, fast] = [sqliteJournal({ directory }), sqliteJournal({ directory, clockOffsetMs: () => 3600_000 })];
  await slow.open({ shards: 1, clusterId: "x" });
  const { storeNowMs } = await fast.acquire(0, "ada", { leaseMs: 1000, features: 1 });
  ok((await slow.acquire(0, "ada", { leaseMs: 1000, features: 1 })).storeNowMs >= storeNowMs);
  await Promise.all([slow.close(), fast.close()]);
  await rm(directory, { recursive: true });
});

test("a long log does not let SQLite's own log grow without bound", async () => {
  const directory = await temporary();
  const journal = sqliteJournal({ directory });
  await journal.open({ shards: 1, clusterId: "x" });
  const epoch = await own(journal, 0);
  const payload = new Uint8Array(1 << 20);
  for (let seq = 1; seq <= 100; seq += 1) await journal.append([{ shard: 0, epoch, seq, payload, keys: [] }]);
  ok((await stat(join(directory, "journal.db-wal"))).size < 32 << 20);
  await journal.close();
  await rm(directory, { recursive: true });
});

test("the log of version 1, one table for all shards, is read and continued", async () => {
  const directory = await temporary();
  const first = sqliteJournal({ directory });
  await first.open({ shards: 3, clusterId: "x" });
  const epochs = [await own(first, 0), await own(first, 1), await own(first, 2)] as const;
  const batch = (shard: 0 | 1 | 2, seq: number) => {
    const payload = Buffer.from(`${shard}/${seq}`);
    return { shard, epoch: epochs[shard], seq, payload, keys: [] };
  };
  for (let seq = 1; seq <= 200; seq += 1) await first.append([batch(0, seq), batch(2, seq)]);
  await first.close();
  const db = new DatabaseSync(join(directory, "journal.db"));
  db.exec("create table log (id integer primary key, epoch integer, hash integer, record blob)");
  for (const shard of [0, 1, 2]) {
    db.exec(`insert into log select (${shard} << 42) | seq, epoch, hash, record from ${tableOf(shard)}`);
    db.exec(`drop table ${tableOf(shard)}`);
  }
  db.exec("pragma user_version = 1");
  db.close();
  await rm(join(directory, "journal.mark")); // that version had none

  const next = sqliteJournal({ directory });
  await next.open({ shards: 3, clusterId: "x" });
  await next.append([batch(0, 201), batch(1, 1), batch(2, 201)]);
  for (const [shard, count] of [
    [0, 201],
    [1, 1],
    [2, 201],
  ] as const) {
    const read: string[] = [];
    for await (const { payload } of next.read(shard, 1)) read.push(Buffer.from(payload).toString());
    deepEqual(
      read,
      Array.from({ length: count }, (_, i) => `${shard}/${i + 1}`),
    );
  }
  await next.close();
  await rm(directory, { recursive: true });
});

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { exerciseJournal } from "./exercise.ts";
import { flipped } from "./memory-tables.ts";
import { sqliteJournal } from "./sqlite.ts";

exerciseJournal("in SQLite", async () => {
  const directory = join(await mkdtemp(join(tmpdir(), "millrace-journal-")), "store");
  let offsetMs = 0;
  const tampering = async (run: (db: DatabaseSync) => void): Promise<void> => {
    const db = new DatabaseSync(join(directory, "journal.db"), { timeout: 5000 });
    run(db);
    db.close();
  };
  const id = (shard: number, seq: number): bigint => (BigInt(shard) << 42n) | BigInt(seq);
  const flip = (
    db: DatabaseSync,
    table: string,
    where: string,
    args: readonly (number | bigint)[],
    bit: number,
  ): void => {
    const { record } = db.prepare(`select record from ${table} where ${where}`).get(...args) as { record: Uint8Array };
    db.prepare(`update ${table} set record = ? where ${where}`).run(flipped(record, bit), ...args);
  };
  return {
    connect: async () => sqliteJournal({ directory, clockOffsetMs: () => offsetMs }),
    advance: (ms) => void (offsetMs += ms),
    tamper: {
      flipRecord: (shard, seq, bit) => tampering((db) => flip(db, "log", "id = ?", [id(shard, seq)], bit)),
      dropRecord: (shard, seq) =>
        tampering((db) => void db.prepare("delete from log where id = ?").run(id(shard, seq))),
      flipChunk: (shard, index, bit) =>
        tampering((db) => {
          const where = `shard = ? and "index" = ? and snapshot = (select "snapshotId" from shards where shard = ?)`;
          flip(db, "chunks", where, [shard, index, shard], bit);
        }),
    },
    destroy: () => rm(join(directory, ".."), { recursive: true }),
  };
});

/**
 * The journal in SQLite files, for one machine: the default when nothing else is configured. Three databases, each
 * with a thread of its own: `journal.db`; `history.db`, whose large transactions would otherwise delay appends; and
 * `shared.db` with entries and records, which is created when the first of them is requested.
 */
import { join } from "node:path";
import type { Added, Entries } from "#base/entries.ts";
import { assembled, type Call } from "#journal/engine/assembled.ts";
import { grouped } from "#journal/grouped.ts";
import type { AppendResult, History, Journal } from "#journal/journal.ts";
import { recordsFrom } from "#records/engine.ts";
import type { settingsOf } from "./database.ts";
import type { HistoryOps } from "./history.ts";
import { packBatches, packRows } from "./packing.ts";
import { WorkerThread } from "./worker-thread.ts";

export type SqliteOptions = {
  /** Created if it does not exist, private to its owner. */
  readonly directory: string;
  /** How long to wait for another process that writes. */
  readonly busyTimeoutMs?: number;
  /** Added to the store's clock; for tests. */
  readonly clockOffsetMs?: () => number;
};

export function sqliteJournal(options: SqliteOptions): Journal {
  const { directory, busyTimeoutMs = 5_000, clockOffsetMs = () => 0 } = options;
  const logPath = join(directory, "journal.db");
  const setup = { logPath, busyTimeoutMs };
  const log = new WorkerThread({ ...setup, role: "log", path: logPath }, clockOffsetMs);
  const past = new WorkerThread({ ...setup, role: "history", path: join(directory, "history.db") }, clockOffsetMs);

  const call = ((op, ...args) => log.call(op, args)) as Call;
  const callPast = <K extends keyof HistoryOps>(
    op: K,
    ...args: Parameters<HistoryOps[K]>
  ): Promise<ReturnType<HistoryOps[K]>> => past.call(op, args) as Promise<ReturnType<HistoryOps[K]>>;

  const shared = new WorkerThread({ ...setup, role: "shared", path: join(directory, "shared.db") }, clockOffsetMs);
  const entries: Entries = {
    add: (entry) => shared.call("entries.add", [entry]) as Promise<Added>,
    read: (name) => shared.call("entries.read", [name]) as ReturnType<Entries["read"]>,
    replace: (name, from, to) => shared.call("entries.replace", [name, from, to]) as Promise<boolean>,
    remove: (name, value) => shared.call("entries.remove", [name, value]) as Promise<boolean>,
  };
  const records = recordsFrom((op, args) => shared.call(`records.${op}`, args));
  const history: History = {
    record: (shard, at, rows) => callPast("record", shard, at, packRows(rows, at.throughSeq)),
    cursor: (shard) => callPast("cursor", shard),
    reset: (shard, epoch) => callPast("reset", shard, epoch),
    job: (shard, job) => callPast("job", shard, job),
    jobs: (query) => callPast("jobs", query),
    count: (filter) => callPast("count", filter),
    trim: (shard, endedBeforeMs, limit) => callPast("trim", shard, endedBeforeMs, limit),
  };
  return assembled({
    call,
    append: grouped((batches) => {
      const packed = packBatches(batches);
      return log.call("append", [packed], [packed.records.buffer]) as Promise<AppendResult>;
    }),
    async describe() {
      const settings = (await log.call("settings", [])) as ReturnType<typeof settingsOf>;
      const { journalMode, synchronous } = settings;
      const durable = synchronous === "full" || synchronous === "extra";
      const notes = [
        `journal_mode=${journalMode}, synchronous=${synchronous}: ` +
          (durable ? "synced at every commit; as durable as this machine's disk" : "WARNING: commits are not synced"),
        "one machine only: the files must not be on a network file system",
      ];
      return { kind: "sqlite", durable, notes };
    },
    history,
    entries,
    records,
    async close() {
      // The log last: the history reads in it, and it can be written back whole only when it is read no more.
      await Promise.all([past.close(), shared.close()]);
      await log.close();
    },
  });
}

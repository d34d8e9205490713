/** Opens an SQLite file so that commits are durable, other users cannot read it, and no call hangs. */
import { closeSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Fault, isFault } from "#base/fault.ts";
import { makeFolder } from "./files.ts";

export type DatabaseOptions = {
  readonly path: string;
  readonly schema: string;
  readonly version: number;
  /** From each version to the next, oldest first. */
  readonly upgrades?: readonly (string | ((db: DatabaseSync) => void))[];
  readonly busyTimeoutMs: number;
  /** Reopened after a failed commit: what the file seems to contain may not be on the disk. */
  readonly isDoubtful: boolean;
};

/** SQLite's write-ahead log is truncated to this after a checkpoint. */
const walBytesMax = 64 << 20;

export function openDatabase(options: DatabaseOptions): DatabaseSync {
  const { path, busyTimeoutMs } = options;
  makeFolder(dirname(path));
  closeSync(openSync(path, "a", 0o600)); // SQLite gives its side files the permissions of the main one
  const db = new DatabaseSync(path, { timeout: busyTimeoutMs });
  try {
    db.exec("pragma journal_mode = wal");
    db.exec("pragma synchronous = full"); // every commit is synced
    db.exec("pragma fullfsync = on"); // on macOS a plain fsync leaves the data in the drive's cache
    // A checkpoint every 4 MiB within a commit: pages stay in the cache only briefly and the file stays small.
    db.exec("pragma wal_autocheckpoint = 1000");
    db.exec(`pragma journal_size_limit = ${walBytesMax}`);
    db.exec("pragma foreign_keys = off");
    transaction(db, "immediate", () => migrate(db, options));
    if (!writtenAnew(db) && options.isDoubtful)
      throw new Fault("unavailable", "open database", { why: "it is in use, and cannot be synced again yet", path });
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** The settings of this very connection: whether a commit is synced depends on nothing else. */
export function settingsOf(db: DatabaseSync): { readonly journalMode: string; readonly synchronous: string } {
  const { journal_mode: journalMode } = db.prepare("pragma journal_mode").get() as { journal_mode: string };
  const { synchronous } = db.prepare("pragma synchronous").get() as { synchronous: number };
  return { journalMode, synchronous: ["off", "normal", "full", "extra"][synchronous] ?? String(synchronous) };
}

/**
 * Writes and syncs everything in the write-ahead log again. After a failed sync the kernel considers the pages written:
 * they are read back from memory, a second sync succeeds, and a power failure loses them together with everything
 * committed after them. False if another connection is in the way.
 */
export function writtenAnew(db: DatabaseSync): boolean {
  const { busy } = db.prepare("pragma wal_checkpoint(truncate)").get() as { busy: number };
  return busy === 0;
}

function migrate(db: DatabaseSync, wanted: DatabaseOptions): void {
  const { user_version: found } = db.prepare("pragma user_version").get() as { user_version: number };
  if (found > wanted.version)
    throw new Fault("invalid", "open database", {
      why: "written by a newer version of this program",
      path: wanted.path,
      version: found,
      understood: wanted.version,
    });
  if (found === wanted.version) return;
  if (found === 0) db.exec(wanted.schema);
  else
    for (const upgrade of wanted.upgrades?.slice(found - 1) ?? [])
      if (typeof upgrade === "string") db.exec(upgrade);
      else upgrade(db);
  db.exec(`pragma user_version = ${wanted.version}`);
}

/** A failed commit may still be found after a crash, so its outcome is unknown; a failed step before it is undone. */
export function transaction<T>(db: DatabaseSync, kind: "immediate" | "deferred", run: () => T): T {
  db.exec(`begin ${kind}`);
  let result: T;
  try {
    result = run();
  } catch (error) {
    rollback(db);
    throw error;
  }
  try {
    db.exec("commit");
  } catch (error) {
    rollback(db);
    throw kind === "immediate" && isInputOutput(error) ? new CommitFailed(error) : error;
  }
  return result;
}

/** After this the connection must not be used any more. */
export class CommitFailed extends Error {
  constructor(cause: unknown) {
    super("commit failed", { cause });
    this.name = "CommitFailed";
  }
}

function rollback(db: DatabaseSync): void {
  if (db.isTransaction) db.exec("rollback");
}

const primaryCode = (error: unknown): number => {
  const code = (error as { errcode?: unknown }).errcode;
  return typeof code === "number" ? code & 0xff : -1;
};
const isInputOutput = (error: unknown): boolean => primaryCode(error) === 10;

/** Maps SQLite's error codes to Faults. */
export function faultOf(doing: string, error: unknown): Fault {
  if (isFault(error)) return error;
  if (error instanceof CommitFailed) return new Fault("unknown-outcome", doing, { why: String(error.cause) }, error);
  const why = error instanceof Error ? error.message : String(error);
  const code = primaryCode(error);
  const corrupt = code === 11 || code === 26; // SQLITE_CORRUPT, SQLITE_NOTADB
  // BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL: nothing was done, it may work later.
  const passing = [5, 6, 7, 8, 9, 10, 13, 14, 15].includes(code);
  const { syscall, path, code: errno } = error as NodeJS.ErrnoException;
  if (passing || syscall !== undefined)
    return new Fault("unavailable", doing, { why, ...(syscall !== undefined && { errno, path }) }, error);
  return new Fault(corrupt ? "corrupt" : "internal", doing, { why, sqlite: code }, error);
}

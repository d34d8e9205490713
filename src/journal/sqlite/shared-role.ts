/**
 * The connection of entries and records, and the mark of how many changes of records were acknowledged: a file that was
 * removed, or a write-ahead log that was cut, would take secrets, schedules and tokens with it without an error.
 */
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { must } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import { steadyClock } from "#journal/steady-clock.ts";
import { recordsOver } from "#records/engine.ts";
import { faultOf, openDatabase, transaction } from "./database.ts";
import { sqliteEntries } from "./entries.ts";
import { identityOf } from "./files.ts";
import { sqliteRecordTables } from "./records.ts";
import { sharedSchema, sharedUpgrades, sharedVersion } from "./shared.ts";
import { readMarks, TailMark } from "./tail-mark.ts";
import type { Operation, Role, RoleSetup } from "./worker.ts";

const readOps = new Set("entries.read records.read records.list records.changes records.newest".split(" "));

export function sharedRole(setup: RoleSetup): Role {
  const markPath = join(dirname(setup.path), "shared.mark");
  checkMark(setup, markPath);
  const db = openDatabase({ ...setup, schema: sharedSchema, upgrades: sharedUpgrades, version: sharedVersion });
  try {
    checkWhole(db, setup.path);
    return roleOver(db, new TailMark(markPath, { isNew: false }));
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Every change of a record adds one to the version of its kind, and those never go. */
const changesIn = (db: DatabaseSync): number =>
  (db.prepare("select coalesce(sum(version), 0) as changes from record_kinds").get() as { changes: number }).changes;

/** Before it is opened to write, which would empty a write-ahead log from which more could be saved. */
function checkMark({ path, busyTimeoutMs }: RoleSetup, markPath: string): void {
  const [mark] = readMarks(markPath); // before the database: another process may write meanwhile
  if (!mark) return;
  const facts = { path, acknowledged: mark.seq };
  const way = `bring its files back from a backup; or remove ${markPath}, to go on without these records`;
  if (identityOf(path) === undefined)
    throw new Fault("corrupt", "open records", { ...facts, why: "it is missing, though there were records", try: way });
  const db = new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs });
  try {
    const found = changesIn(db);
    if (found >= mark.seq) return;
    const why = "it, or its write-ahead log, was cut or changed: records that were acknowledged are missing";
    throw new Fault("corrupt", "open records", { ...facts, found, why, try: way });
  } catch (error) {
    const fault = faultOf("open records", error);
    throw fault.code === "corrupt"
      ? new Fault("corrupt", fault.doing, { path, try: way, ...fault.facts }, error)
      : fault;
  } finally {
    db.close();
  }
}

/** A file that was cut is found here, and not when a page is read one day. */
function checkWhole(db: DatabaseSync, path: string): void {
  const { page_count: pages } = db.prepare("pragma page_count").get() as { page_count: number };
  const { page_size: pageBytes } = db.prepare("pragma page_size").get() as { page_size: number };
  const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  const sizeBytes = sizeOf(path);
  if (sizeBytes >= pages * pageBytes || sizeOf(`${path}-wal`) > 0) return;
  const why = "it was cut: pages at its end are missing";
  throw new Fault("corrupt", "open records", { path, sizeBytes, pages, why, try: "bring it back from a backup" });
}

function roleOver(db: DatabaseSync, mark: TailMark): Role {
  const tables = sqliteRecordTables(db);
  let [changes, changing] = [changesIn(db), 0];
  const records = recordsOver({
    ...tables,
    putKind(of, row) {
      tables.putKind(of, row);
      changing += 1;
    },
  });
  const rooms = { entries: sqliteEntries(db), records };
  const operations = rooms as unknown as Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  const clock = steadyClock(Date.now, () => performance.now());
  return {
    reads: readOps,
    run(op, offsetMs, args) {
      const [room = "", name = ""] = op.split(".");
      const operation = must(operations[room]?.[name], `operation ${op}`);
      const run = (): unknown => operation(clock.nowMs() + offsetMs, ...args);
      if (readOps.has(op)) return transaction(db, "deferred", run);
      changing = 0;
      const answer = transaction(db, "immediate", run);
      // Changes by other processes are not counted: then the mark is behind, and never ahead.
      if (changing > 0) mark.put([{ shard: 0, seq: (changes += changing), hash: 0 }], clock.nowMs());
      return answer;
    },
    close() {
      mark.close();
      db.close();
    },
  };
}

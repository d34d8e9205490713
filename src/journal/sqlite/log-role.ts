/** The log's connection: appends, and the mark of how far they were acknowledged. */
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { must } from "#base/assert.ts";
import { engineOver, type Engine } from "#journal/engine/engine.ts";
import type { AppendResult } from "#journal/journal.ts";
import { steadyClock } from "#journal/steady-clock.ts";
import { openDatabase, settingsOf, transaction, writtenAnew } from "./database.ts";
import { identityOf } from "./files.ts";
import { logEnds } from "./log-tables.ts";
import { unpackBatches, type Packed } from "./packing.ts";
import { logSchema, logUpgrades, logVersion, sqliteTables } from "./tables.ts";
import { checkMarks, readMarks, TailMark, type Marked } from "./tail-mark.ts";
import type { Operation, Role, RoleSetup } from "./worker.ts";

const readOps = new Set(
  "cluster confirm tail page snapshotPointer snapshotChunk segments findKeys ownerships nodes settings".split(" "),
);
/** These write to the cluster's rows anyway: the clock's high-water mark is stored with them. */
const leaseOps = new Set("open acquire renew release announce raiseFeatureLevel".split(" "));

export function logRole(setup: RoleSetup, offsetMs: number): Role {
  const mark = openMark(setup);
  let db: DatabaseSync | undefined;
  try {
    db = openDatabase({ ...setup, schema: logSchema, upgrades: logUpgrades, version: logVersion });
    return roleOver(db, mark, offsetMs);
  } catch (error) {
    db?.close();
    mark.close();
    throw error;
  }
}

/**
 * Before the database is opened to write: that would empty a write-ahead log from which more could be saved. A database
 * that does not exist yet has lost nothing, whatever a mark says of the one before it.
 */
function openMark({ path, busyTimeoutMs }: RoleSetup): TailMark {
  const markPath = join(dirname(path), "journal.mark");
  const isNew = identityOf(path) === undefined;
  const marks = isNew ? [] : readMarks(markPath); // before the log: another process may append meanwhile
  if (marks.length > 0) {
    const db = new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs });
    try {
      checkMarks(marks, () => logEnds(db), { log: path, mark: markPath });
    } finally {
      db.close();
    }
  }
  return new TailMark(markPath, { isNew });
}

function roleOver(db: DatabaseSync, mark: TailMark, offsetMs: number): Role {
  const tables = sqliteTables(db);
  let appended: Marked[] = [];
  const engine: Engine = engineOver({
    ...tables,
    putRecord(shard, tail, record) {
      tables.putRecord(shard, tail, record);
      appended.push({ shard, seq: tail.seq, hash: tail.hash });
    },
  });
  const operations = engine as unknown as Readonly<Record<string, Operation>>;
  const clock = steadyClock(Date.now, () => performance.now());
  clock.atLeast(tables.clockMs() - offsetMs);
  const append = (packed: Packed, nowMs: number): AppendResult => {
    appended = [];
    const result = transaction(db, "immediate", () => engine.append(nowMs, unpackBatches(packed)));
    mark.put(appended, clock.nowMs());
    return result;
  };
  return {
    reads: readOps,
    run(op, offsetMs, args) {
      if (op === "settings") return settingsOf(db);
      if (op === "append") return append(args[0] as Packed, clock.nowMs() + offsetMs);
      const operation = must(operations[op], `operation ${op}`);
      if (readOps.has(op)) return transaction(db, "deferred", () => operation(clock.nowMs() + offsetMs, ...args));
      return transaction(db, "immediate", () => {
        if (!leaseOps.has(op)) return operation(clock.nowMs() + offsetMs, ...args);
        clock.atLeast(tables.clockMs() - offsetMs);
        const nowMs = clock.nowMs() + offsetMs;
        const answer = operation(nowMs, ...args);
        tables.putClock(nowMs);
        return answer;
      });
    },
    // The records are then in the database itself, which is checked as it is read.
    settle: () => void writtenAnew(db),
    close() {
      mark.close();
      db.close();
    },
  };
}

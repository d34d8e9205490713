/**
 * Opens a database whose rows can be made again. A damaged one is set aside under another name, for whom it may still
 * be of use, and an empty one takes its place; its cursors are at 0, so that its writer begins again.
 */
import { existsSync, renameSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { faultOf, openDatabase, type DatabaseOptions } from "./database.ts";

export function openProjection(options: DatabaseOptions): DatabaseSync {
  try {
    return checked(openDatabase(options));
  } catch (error) {
    if (faultOf("open history", error).code !== "corrupt") throw error;
    // Only the last damaged one is kept.
    for (const end of ["", "-wal", "-shm"])
      if (existsSync(options.path + end)) renameSync(options.path + end, `${options.path}.damaged${end}`);
    return openDatabase(options);
  }
}

/** Reads what every start reads anyway: a cut file is found here, not by a caller. */
function checked(db: DatabaseSync): DatabaseSync {
  try {
    db.prepare("select count(*) from cursors").get();
    db.prepare("select max(submitted_at_ms), min(submitted_at_ms) from jobs").get();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Remembers beside the journal that there is one. Without it, a node whose journal is gone would start an
 * empty one, and every job would be gone without an error.
 */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import type { DataFolder } from "./data-folder.ts";

const markOf = ({ path }: DataFolder): string => join(path, "journal-made");

/** Before it is opened. */
export function checkJournalIsThere(folder: DataFolder, directory: string): void {
  const database = join(directory, "journal.db");
  if (existsSync(database) || !existsSync(markOf(folder))) return;
  throw new Fault("corrupt", "open journal", {
    path: database,
    why: "it is missing, though this data folder had one",
    try: `bring it back from a backup; or remove ${markOf(folder)}, to start with an empty one and without any job`,
  });
}

/** Once it is open. */
export function markJournal(folder: DataFolder): void {
  if (!existsSync(markOf(folder)))
    writeFileSync(markOf(folder), "This data folder has a journal. Do not remove this file while you need its jobs.\n");
}

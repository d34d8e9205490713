import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { doesNotThrow, throws } from "node:assert/strict";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { dataFolder } from "./data-folder.ts";
import { checkJournalIsThere, markJournal } from "./journal-mark.ts";

test("a data folder whose journal is gone is refused, with the way out", () => {
  const root = mkdtempSync(join(tmpdir(), "millrace-mark-"));
  try {
    const folder = dataFolder(root);
    doesNotThrow(() => checkJournalIsThere(folder, root), "a new folder");
    writeFileSync(join(root, "journal.db"), "");
    markJournal(folder);
    markJournal(folder);
    doesNotThrow(() => checkJournalIsThere(folder, root));
    rmSync(join(root, "journal.db"));
    throws(() => checkJournalIsThere(folder, root), /journal\.db.*it is missing.*from a backup.*journal-made/);
    rmSync(join(root, "journal-made"));
    doesNotThrow(() => checkJournalIsThere(folder, root));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

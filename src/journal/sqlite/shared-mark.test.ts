/** Records that were acknowledged and are gone keep the database from being opened, with the ways out. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { cpSync, mkdtempDisposableSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import type { Journal } from "#journal/journal.ts";
import { sqliteJournal } from "./sqlite.ts";

const id = (name: string) => ({ tenant: "mill", kind: "grain", name });

async function opened(directory: string): Promise<Journal> {
  const journal = sqliteJournal({ directory });
  await journal.open({ shards: 1, clusterId: "marked" });
  return journal;
}

/** What a process leaves that is killed after some records, and what one leaves that was stopped. */
async function withRecords(root: string) {
  const journal = await opened(join(root, "stopped"));
  for (let n = 0; n < 20; n += 1) await journal.records.create(id(`r${n}`), "flour");
  await journal.records.remove(id("r0"), 1);
  cpSync(join(root, "stopped"), join(root, "killed"), { recursive: true });
  await journal.close();
  return { killed: join(root, "killed"), stopped: join(root, "stopped") };
}

async function found(directory: string): Promise<number | string> {
  const journal = await opened(directory);
  try {
    return (await journal.records.list({ kind: "grain", limit: 100 })).records.length;
  } catch (error) {
    ok(isFault(error, "corrupt"), String(error));
    return error.message;
  } finally {
    await journal.close();
  }
}

type Left = "stopped" | "killed";
const damages: readonly (readonly [name: string, left: Left, damage: (folder: string) => void])[] = [
  ["the file was removed", "stopped", (folder) => rmSync(join(folder, "shared.db"))],
  ["the file was cut", "stopped", (folder) => truncateSync(join(folder, "shared.db"), 16_384)],
  ["its write-ahead log was removed", "killed", (folder) => rmSync(join(folder, "shared.db-wal"))],
  [
    "its write-ahead log was cut",
    "killed",
    (folder) => truncateSync(join(folder, "shared.db-wal"), statSync(join(folder, "shared.db-wal")).size - 5_000),
  ],
];

for (const [name, left, damage] of damages)
  test(`records are refused after ${name}, and without the mark they are opened`, async () => {
    using root = mkdtempDisposableSync(join(tmpdir(), "millrace-shared-"));
    const folder = (await withRecords(root.path))[left];
    rmSync(join(folder, "shared.db-shm"), { force: true });
    damage(folder);
    match(String(await found(folder)), /open records: corrupt .*from a backup/);
    if (name === "the file was cut") return;
    rmSync(join(folder, "shared.mark"));
    equal(typeof (await found(folder)), "number");
  });

test("records of a process that was killed, or stopped, are all there", async () => {
  using root = mkdtempDisposableSync(join(tmpdir(), "millrace-shared-"));
  const { killed, stopped } = await withRecords(root.path);
  deepEqual([await found(killed), await found(stopped)], [19, 19]);
});

test("two processes write: whatever each has counted, neither is refused", async () => {
  using root = mkdtempDisposableSync(join(tmpdir(), "millrace-shared-"));
  const [one, two] = [await opened(root.path), await opened(root.path)];
  for (let n = 0; n < 10; n += 1) {
    await one.records.create(id(`a${n}`), "flour");
    await two.records.create(id(`b${n}`), "flour");
  }
  await one.close();
  equal(await found(root.path), 20);
  await two.records.create(id("c"), "flour");
  await two.close();
  equal(await found(root.path), 21);
});

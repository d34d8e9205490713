// What SQLite's journal does with its files, and what it reports when they are removed.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, rmSync, writeSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { batch, fill, own } from "#journal/testing/support.ts";
import type { Journal } from "#journal/journal.ts";
import { whileThere } from "./files.ts";
import { sqliteJournal } from "./sqlite.ts";

const variable = "MILLRACE_TEST_SYNC_DIRECTORY";
const removeVariable = "MILLRACE_TEST_SYNC_REMOVE";
const appends = 5;

/** After a failure the files are opened again: no new ones must be created in their place. */
async function removeAndTell(journal: Journal, directory: string): Promise<void> {
  rmSync(directory, { recursive: true });
  const code = await journal.tail(0).then(
    () => "answered",
    (error: unknown) => (isFault(error) ? error.code : String(error)),
  );
  writeSync(1, `${existsSync(directory) ? "made" : code} 0\n`);
  await journal.close();
}

/**
 * The child: a journal in a folder that does not exist yet, then appends. Prints a line after each acknowledged one.
 */
async function appendAndTell(directory: string): Promise<void> {
  const journal = sqliteJournal({ directory });
  await journal.open({ shards: 1, clusterId: "sync" });
  const epoch = await own(journal, 0);
  await journal.history.cursor(0); // a second connection to the log: SQLite cleans up when the last one closes
  writeSync(1, "begun\n");
  for (let seq = 1; seq <= appends; seq += 1) {
    try {
      await journal.append([batch(0, epoch, seq)]);
    } catch (error) {
      writeSync(1, `${isFault(error) ? error.code.replace("-", "_") : "no fault"} ${seq}\n`);
      if (process.env[removeVariable] !== undefined) return await removeAndTell(journal, directory);
      const tail = await journal.tail(0);
      writeSync(1, `tail ${tail.seq}\n`);
      if (tail.seq < seq) await journal.append([batch(0, epoch, seq)]);
    }
    writeSync(1, `acknowledged ${seq}\n`);
  }
  await journal.saveSnapshot(0, { epoch, seq: appends }, one());
  writeSync(1, "snapshot\n");
  await journal.history.reset(0, epoch);
  writeSync(1, "history\n");
  await journal.close();
}

async function* one(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(1000);
}

type Syncs = { readonly paths: string; readonly ofThread: number };

/** For each line of the child: what was synced since the line before, and how many syncs the log's thread had made. */
async function syncsOfChild(
  root: string,
  { failing = 0, remove = false }: { readonly failing?: number; readonly remove?: boolean } = {},
): Promise<ReadonlyMap<string, Syncs>> {
  const trace = join(root, "trace");
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const calls = ["-f", "-y", "-e", "trace=fsync,fdatasync,write", "-e", "signal=none", "-o", trace];
  if (failing > 0) calls.push("-e", `inject=fdatasync,fsync:error=EIO:when=${failing}`);
  const child = spawnSync("strace", [...calls, process.execPath, import.meta.filename], {
    env: { ...env, [variable]: join(root, "deep", "store"), ...(remove && { [removeVariable]: "yes" }) },
    encoding: "utf8",
    timeout: 60_000,
  });
  equal(child.status, 0, child.stderr);
  const syncs = new Map<string, Syncs>();
  const counts = new Map<string, number>();
  let [paths, ofThread] = ["", 0];
  for (const line of (await readFile(trace, "utf8")).split("\n")) {
    const [thread = ""] = line.split(" ");
    const synced = /f(?:data)?sync\(\d+<([^>]*)>(?!.*INJECTED)/.exec(line)?.[1];
    if (synced !== undefined) {
      paths += `${synced}\n`;
      counts.set(thread, (counts.get(thread) ?? 0) + 1);
      if (synced.endsWith("journal.db-wal")) ofThread = counts.get(thread) ?? 0;
    }
    const said = /write\(1<.*"(\w+(?: \d+)?)\\n"/.exec(line)?.[1];
    if (said === undefined) continue;
    syncs.set(said, { paths, ofThread });
    paths = "";
  }
  return syncs;
}

const straceWorks = spawnSync("strace", ["-o", "/dev/null", "true"]).status === 0;

async function withJournal(play: (journal: Journal, directory: string, epoch: number) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "millrace-files-"));
  const directory = join(root, "store");
  const journal = sqliteJournal({ directory });
  try {
    await journal.open({ shards: 1, clusterId: "files" });
    const epoch = await own(journal, 0);
    await fill(journal, { shard: 0, epoch, count: 3 });
    await journal.history.cursor(0);
    await play(journal, directory, epoch);
  } finally {
    await journal.close();
    await rm(root, { recursive: true, force: true });
  }
}

/** The call fails, and names the missing file. */
async function missesFile(call: Promise<unknown>): Promise<void> {
  const error = await call.then(
    () => undefined,
    (fault: unknown) => fault,
  );
  ok(isFault(error) && /^(unavailable|unknown-outcome)$/.test(error.code), String(error));
  match(error.message, /removed or replaced/);
}

async function refusesAll(journal: Journal, epoch: number): Promise<void> {
  await missesFile(journal.append([batch(0, epoch, 4)]));
  await missesFile(journal.tail(0)); // otherwise the host would find there what it just tried to append
  await missesFile(journal.confirm([{ shard: 0, epoch }]));
  await missesFile(journal.renew("ada", [{ shard: 0, epoch }], 1_000));
  await missesFile(journal.acquire(0, "ada", { leaseMs: 1_000, features: 1 }));
}

const childDirectory = process.env[variable];
if (childDirectory !== undefined) await appendAndTell(childDirectory);
else {
  describe("files of the journal in SQLite", () => {
    test("J2 nothing is acknowledged on removed files", () =>
      withJournal(async (journal, directory, epoch) => {
        await rm(directory, { recursive: true });
        await refusesAll(journal, epoch);
        await missesFile(journal.history.reset(0, epoch));
        await mkdir(directory);
        await refusesAll(journal, epoch);
      }));

    test("J2 nothing is acknowledged while another folder is at the journal's path", () =>
      withJournal(async (journal, directory, epoch) => {
        await rename(directory, `${directory}.moved`);
        const other = sqliteJournal({ directory });
        await other.open({ shards: 1, clusterId: "other" });
        await refusesAll(journal, epoch);
        await other.close();
        await rm(directory, { recursive: true });
        await rename(`${directory}.moved`, directory);
        const { seq } = await journal.tail(0); // the folder is back: the journal continues
        await fill(journal, { shard: 0, epoch, from: seq + 1, count: 1 });
      }));

    test("J2 nothing is acknowledged when only the write-ahead log was removed", () =>
      withJournal(async (journal, directory, epoch) => {
        await rm(join(directory, "journal.db-wal"));
        await refusesAll(journal, epoch);
      }));

    test("J2 writes while the files were removed have an unknown outcome, and reads do not count", () => {
      const outcome = (isRead: boolean, ...missing: (string | undefined)[]): string => {
        try {
          return whileThere({ missing: () => missing.shift() }, { doing: "append", isRead }, () => "done");
        } catch (error) {
          return isFault(error) ? error.code : String(error);
        }
      };
      equal(outcome(false, undefined, undefined), "done");
      equal(outcome(false, "journal.db"), "unavailable");
      equal(outcome(false, undefined, "journal.db"), "unknown-outcome");
      equal(outcome(true, undefined, "journal.db"), "unavailable");
    });

    test("the connection that appends reports its own sync settings", () =>
      withJournal(async (journal) => {
        const { durable, notes } = await journal.describe();
        equal(durable, true);
        match(notes.join("\n"), /journal_mode=wal, synchronous=full/);
      }));
  });

  const skip = straceWorks ? false : "needs strace: it is not installed, or may not trace";
  describe("J2 what is synced before it is acknowledged, by system calls", { skip }, async () => {
    const root = await mkdtemp(join(tmpdir(), "millrace-sync-"));
    after(() => rm(root, { recursive: true, force: true }));
    const syncs = skip ? new Map<string, Syncs>() : await syncsOfChild(root);
    const before = (line: string): string => syncs.get(line)?.paths ?? "";

    test("every append", () => {
      for (let seq = 1; seq <= appends; seq += 1) match(before(`acknowledged ${seq}`), /journal\.db-wal/);
    });

    test("a snapshot, and the history", () => {
      match(before("snapshot"), /journal\.db-wal/);
      match(before("history"), /history\.db-wal/);
    });

    test("the files' names in their folder, and the folder's in those above", () => {
      const begun = before("begun").split("\n");
      for (const folder of ["deep/store", "deep", ""])
        ok(begun.includes(join(root, folder)), `${folder} in ${begun.join(", ")}`);
    });

    test("after a failed sync everything is written and synced again before anything is read back", async () => {
      const other = await mkdtemp(join(root, "failing-"));
      // The kernel drops pages that it could not write: another sync of the same file succeeds and proves nothing.
      const third = syncs.get("acknowledged 3")?.ofThread ?? 0;
      const failing = await syncsOfChild(other, { failing: third });
      const said = [...failing.keys()];
      match(said.slice(3, 5).join(), /^unknown_outcome 3,tail [23]$/);
      const since = said.slice(3, 5).map((line) => failing.get(line)?.paths ?? "");
      match(since.join(""), /journal\.db$/m);
      ok(said.includes(`acknowledged ${appends}`), "it goes on");
    });

    test("no empty journal is created when the files disappear after a failed sync", async () => {
      const other = await mkdtemp(join(root, "failing-"));
      const failing = syncs.get("acknowledged 3")?.ofThread ?? 0;
      const said = [...(await syncsOfChild(other, { failing, remove: true })).keys()];
      deepEqual(said.slice(3), ["unknown_outcome 3", "unavailable 0"]);
    });
  });
}

import { deepEqual, equal, match, ok } from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { fill, own } from "#journal/testing/support.ts";
import type { Journal } from "#journal/journal.ts";
import { sqliteJournal } from "./sqlite.ts";
import { decodeSlots, encodeSlot, lackingOf, runsOf, type LogEnd, type Marked } from "./tail-mark.ts";

const mark = (shard: number, seq: number, hash = 7): Marked => ({ shard, seq, hash });

test("slots: read as written; damaged, misplaced or cut ones say nothing", () => {
  const marks = [mark(0, 5), mark(1, 2 ** 40, 0xffffffff), mark(2, 9)];
  const whole = Buffer.concat(marks.map(encodeSlot));
  deepEqual(decodeSlots(whole), marks);
  deepEqual(decodeSlots(Buffer.alloc(48)), []);
  const flipped = Buffer.from(whole);
  flipped[25] = (flipped[25] ?? 0) ^ 1;
  deepEqual(decodeSlots(flipped), [marks[0], marks[2]]);
  deepEqual(decodeSlots(Buffer.concat([encodeSlot(mark(1, 5))])), [], "the slot of shard 1 in the place of shard 0");
  deepEqual(decodeSlots(whole.subarray(0, 40)), [marks[0]]);
});

test("slots of neighbouring shards are written together", () => {
  const runs = runsOf([mark(4, 1), mark(2, 1), mark(3, 1), mark(9, 1)]);
  deepEqual(
    runs.map(({ shard, slots }) => [shard, slots.length / encodeSlot(mark(0, 1)).length]),
    [
      [2, 3],
      [9, 1],
    ],
  );
  const file = Buffer.alloc(24 * 10);
  for (const { shard, slots } of runs) slots.copy(file, shard * 24);
  deepEqual(decodeSlots(file), [mark(2, 1), mark(3, 1), mark(4, 1), mark(9, 1)]);
});

test("what a log lacks of what was acknowledged", () => {
  const log = (endSeq: number | undefined, hash?: number): LogEnd => ({
    end: () => (endSeq === undefined ? undefined : { seq: endSeq, epoch: 1, hash: 7 }),
    hash: () => hash,
  });
  const cases: [string, LogEnd, number | undefined][] = [
    ["ends with the record", log(5, 7), undefined],
    ["goes on after it", log(8, 7), undefined],
    ["was trimmed past it", log(8), undefined],
    ["ends before it", log(3), 3],
    ["has another record in its place", log(5, 6), 4],
    ["does not know the shard", log(undefined), 0],
  ];
  for (const [name, end, found] of cases) equal(lackingOf([mark(2, 5)], end)?.found, found, name);
});

async function withFolder(play: (root: string) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "millrace-mark-"));
  try {
    await play(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const opened = async (directory: string): Promise<Journal> => {
  const journal = sqliteJournal({ directory });
  await journal.open({ shards: 2, clusterId: "marked" });
  return journal;
};

/** What a process leaves that is killed after `count` appends: the files as they are while it runs. */
async function killedAfter(count: number, root: string): Promise<string> {
  const journal = await opened(join(root, "running"));
  const killed = join(root, "killed");
  const epoch = await own(journal, 1);
  await fill(journal, { shard: 1, epoch, count });
  cpSync(join(root, "running"), killed, { recursive: true });
  rmSync(join(killed, "journal.db-shm"), { force: true });
  await journal.close();
  return killed;
}

async function refusal(directory: string): Promise<string> {
  const journal = sqliteJournal({ directory });
  const error = await journal.open({ shards: 2, clusterId: "marked" }).then(
    () => undefined,
    (fault: unknown) => fault,
  );
  await journal.close();
  ok(isFault(error, "corrupt"), `refused: ${String(error)}`);
  return error.message;
}

test("J2 a journal that lost acknowledged records is refused, with the way out", () =>
  withFolder(async (root) => {
    const killed = await killedAfter(50, root);
    const wal = join(killed, "journal.db-wal");
    const whole = readFileSync(wal);
    for (const sizeBytes of [0, Math.floor(whole.length / 2), whole.length - 1]) {
      truncateSync(wal, sizeBytes);
      match(await refusal(killed), /journal\.db-wal.*acknowledged=50.*missing.*backup.*remove .*journal\.mark/);
      match(await refusal(killed), /acknowledged=50/, "the same at the next start: nothing was emptied");
      writeFileSync(wal, whole);
    }
    const journal = await opened(killed);
    equal((await journal.tail(1)).seq, 50, "the files are back: the journal goes on");
    await fill(journal, { shard: 1, epoch: await own(journal, 1, "ada"), from: 51, count: 1 });
    await journal.close();
    await (await opened(killed)).close();
  }));

test("a cut journal goes on without the lost records once its mark was removed", () =>
  withFolder(async (root) => {
    const killed = await killedAfter(50, root);
    const wal = join(killed, "journal.db-wal");
    truncateSync(wal, Math.floor(statSync(wal).size / 2));
    rmSync(join(killed, "journal.mark"));
    const journal = await opened(killed);
    const { seq } = await journal.tail(1);
    ok(seq > 0 && seq < 50, `${seq} records are left`);
    await journal.close();
  }));

test("a journal that was stopped has nothing in its write-ahead log", () =>
  withFolder(async (root) => {
    const journal = await opened(root);
    await journal.history.cursor(0); // its connection to the log must not keep the log from being emptied
    await fill(journal, { shard: 1, epoch: await own(journal, 1), count: 5 });
    await journal.close();
    equal(statSync(join(root, "journal.db-wal"), { throwIfNoEntry: false })?.size ?? 0, 0);
  }));

test("a new journal does not heed the mark of the one before it", () =>
  withFolder(async (root) => {
    const killed = await killedAfter(9, root);
    for (const name of ["journal.db", "journal.db-wal"]) rmSync(join(killed, name));
    for (let start = 1; start <= 2; start += 1) {
      const journal = await opened(killed);
      equal((await journal.tail(1)).seq, start - 1);
      await fill(journal, { shard: 1, epoch: await own(journal, 1, "ada"), from: start, count: 1 });
      await journal.close();
    }
  }));

test("a damaged history is set aside, and an empty one takes its place", () =>
  withFolder(async (root) => {
    const journal = await opened(root);
    equal(await journal.history.cursor(0), 0);
    await journal.close();
    writeFileSync(join(root, "history.db"), "no database at all, but long enough to be read as one".repeat(40));
    const again = await opened(root);
    equal(await again.history.cursor(0), 0);
    await again.close();
    match(readFileSync(join(root, "history.db.damaged"), "utf8"), /^no database/);
  }));

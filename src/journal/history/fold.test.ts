import { deepEqual, equal } from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { HistoryRows, TaskRow } from "#base/history-rows.ts";
import { jobRow, jobRows } from "#journal/testing/history.ts";
import { own } from "#journal/testing/support.ts";
import { tasksIn } from "./cells.ts";
import { byKey, historyTables, type TableName } from "./columns.ts";
import { fold, unfold, type StoredPage } from "./fold.ts";
import { sqliteJournal } from "#journal/sqlite/sqlite.ts";

const none: HistoryRows = { jobs: [], stages: [], tasks: [], attempts: [], steps: [] };

describe("a small job in one row", () => {
  const small = jobRows(0, 1);

  test("holds its stages, tasks and attempts, and returns them", () => {
    const stored = fold(small, 7);
    deepEqual([stored.stages, stored.tasks, stored.attempts], [[], [], []]);
    deepEqual([stored.steps, stored.pages], [small.steps, []]);
    const [{ whole, ...job } = { whole: "" }] = stored.jobs;
    deepEqual(job, small.jobs[0]);
    deepEqual(tasksIn(whole), [10, 11]);
    const found = unfold({ job: jobRow(0, 1), stages: [], tasks: [], attempts: [] }, [whole]);
    deepEqual(found, { job: jobRow(0, 1), stages: small.stages, tasks: small.tasks, attempts: small.attempts });
  });

  test("is merged with rows written before its end, in order; its own row comes last", () => {
    const [whole = ""] = fold(small, 7).jobs.map((job) => job.whole);
    const first = small.attempts.map((attempt) => ({ ...attempt, token: 1, outcome: "expired" }));
    const old = small.tasks.map((task) => ({ ...task, phase: "FAILED" }));
    const found = unfold({ job: jobRow(0, 1), stages: [], tasks: old, attempts: first }, [whole]);
    deepEqual(found.tasks, small.tasks);
    deepEqual(
      found.attempts.map(({ task, token, outcome }) => [task, token, outcome]),
      [
        [10, 1, "expired"],
        [10, 3, "committed"],
        [11, 1, "expired"],
        [11, 3, "committed"],
      ],
    );
  });

  test("a job that has not ended stays in the tables", () => {
    const { jobs, ...running } = small;
    equal(jobs.length, 1);
    deepEqual(fold({ ...none, ...running }, 7), { ...none, ...running, pages: [], tags: [], submissions: [] });
  });
});

describe("many rows of one job in a page", () => {
  const [task] = jobRows(0, 1).tasks as [TaskRow, ...TaskRow[]];
  const tasksOf = (count: number, part: Partial<TaskRow> = {}): TaskRow[] =>
    Array.from({ length: count }, (_, i) => ({ ...task, task: i, ...part }));

  test("are in none of the tables, whether the job has ended or not", () => {
    const tasks = tasksOf(300);
    for (const jobs of [[], [jobRow(0, 1)]]) {
      const stored = fold({ ...none, jobs, tasks }, 7);
      deepEqual(
        stored.jobs,
        jobs.map((job) => ({ ...job, whole: "" })),
      );
      deepEqual(
        stored.pages.map(({ cells: _, ...page }) => page),
        [0, 1].map((part) => ({ shard: 0, job: 1, seq: 7, part })),
      );
      deepEqual({ ...stored, jobs: [], pages: [] }, { ...none, pages: [], tags: [], submissions: [] });
      const found = { job: jobRow(0, 1), stages: [], tasks: [], attempts: [] };
      deepEqual(unfold(found, stored.pages.map(cellsOf)).tasks, tasks);
    }
  });

  test("take as many pages as their results need", () => {
    const tasks = tasksOf(20, { result: "x".repeat(300_000) });
    const { pages } = fold({ ...none, tasks }, 7);
    deepEqual(
      pages.map(({ part, cells }) => [part, cells.length < 1 << 20]),
      pages.map((_, part) => [part, true]),
    );
    deepEqual(pages.map(cellsOf).flatMap(tasksIn), [...Array(20).keys()]);
  });

  const sorted = (rows: ReadonlyMap<number, TaskRow>): TaskRow[] =>
    [...rows.values()].toSorted((a, b) => a.task - b.task);

  test("however history is split into writes, and rewritten in others, the newest version of each row is read", () => {
    const portions = fc.array(fc.nat(40), { minLength: 1, maxLength: 30 });
    const written = fc.array(fc.nat(30), { maxLength: 200 });
    fc.assert(
      fc.property(written, portions, portions, fc.nat(200), (numbers, first, second, secondMax) => {
        const newest = new Map<number, TaskRow>();
        const log = numbers.map((no, i): TaskRow => {
          const generation = (newest.get(no)?.generation ?? 0) + (i % 3 === 0 ? 1 : 0);
          const row = { ...task, task: no, generation, endedAtMs: i, result: `${i}` };
          newest.set(no, row);
          return row;
        });
        const tables = new Map<number, TaskRow>();
        const pages = new Map<string, StoredPage>();
        const write = (sizes: readonly number[], begin: number, end: number): void => {
          for (let from = begin, i = 0; from < end; i += 1) {
            const to = Math.min(end, from + (sizes[i % sizes.length] ?? 0) + 1);
            const stored = fold({ ...none, tasks: log.slice(from, to) }, to);
            for (const row of stored.tasks) tables.set(row.task, row);
            for (const page of stored.pages) pages.set(`${page.seq}/${page.part}`, page);
            from = to;
          }
        };
        write(first, 0, log.length);
        const middle = Math.min(secondMax, log.length);
        write(second, 0, middle);
        write([500], middle, log.length);
        const inOrder = [...pages.values()].toSorted((a, b) => a.seq - b.seq || a.part - b.part);
        const found = { job: jobRow(0, 1), stages: [], tasks: sorted(tables), attempts: [] };
        deepEqual(unfold(found, inOrder.map(cellsOf)).tasks, sorted(newest));
      }),
    );
  });
});

const cellsOf = ({ cells }: StoredPage): string => cells;

test("history of the previous version is migrated", async () => {
  const directory = mkdtempSync(join(tmpdir(), "millrace-history-"));
  try {
    const old = new DatabaseSync(join(directory, "history.db"));
    old.exec("create table cursors (shard integer primary key, epoch integer not null, seq integer not null)");
    const later = ["seen_at_ms", "number", "series", "tags"];
    const columnsOf = (name: TableName) => historyTables[name].columns.filter((column) => !later.includes(column.name));
    for (const name of Object.keys(historyTables) as TableName[]) {
      const columns = columnsOf(name)
        .map((column) => `"${column.name}" not null`)
        .join(", ");
      old.exec(`create table ${name} (${columns}, primary key (${byKey(historyTables[name])})) without rowid`);
    }
    old.exec("create index jobs_newest on jobs (ended_at_ms, shard, job); pragma user_version = 1");
    const columns = columnsOf("jobs");
    const row = jobRow(0, 7) as unknown as Record<string, string | number>;
    old
      .prepare(`insert into jobs (${columns.map(({ name }) => name).join()}) values (${columns.map(() => "?").join()})`)
      .run(...columns.map(({ field }) => row[field] ?? ""));
    old.close();
    const journal = sqliteJournal({ directory });
    await journal.open({ clusterId: "test", shards: 1 });
    const epoch = await own(journal, 0);
    deepEqual((await journal.history.job(0, 7))?.job, jobRow(0, 7));
    await journal.history.record(0, { epoch, throughSeq: 1 }, jobRows(0, 8));
    const { jobs, ...rest } = jobRows(0, 8);
    const [job] = jobs;
    deepEqual(await journal.history.job(0, 8), { job, ...rest });
    const [task] = jobRows(0, 9).tasks;
    const tasks = Array.from({ length: 40 }, (_, no) => ({ ...(task as TaskRow), task: no }));
    await journal.history.record(0, { epoch, throughSeq: 2 }, { ...jobRows(0, 9), tasks });
    deepEqual((await journal.history.job(0, 9))?.tasks, tasks);
    await journal.close();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

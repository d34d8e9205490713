import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import type { HistoryRows } from "#base/history-rows.ts";
import { jobRow, jobRows } from "./exercise-history.ts";
import { own } from "./exercise-support.ts";
import { byKey, historyTables, tableNames } from "./history-columns.ts";
import { fold, tasksIn, unfold } from "./history-fold.ts";
import { sqliteJournal } from "./sqlite.ts";

const none: HistoryRows = { jobs: [], stages: [], tasks: [], attempts: [], steps: [] };

describe("a small job in one row", () => {
  const small = jobRows(0, 1);

  test("holds its stages, tasks and attempts, and gives them back", () => {
    const stored = fold(small);
    deepEqual([stored.stages, stored.tasks, stored.attempts], [[], [], []]);
    deepEqual(stored.steps, small.steps);
    const [{ whole, ...job } = { whole: "" }] = stored.jobs;
    deepEqual(job, small.jobs[0]);
    deepEqual(tasksIn(whole), [10, 11]);
    const found = unfold({ job: jobRow(0, 1), stages: [], tasks: [], attempts: [] }, whole);
    deepEqual(found, { job: jobRow(0, 1), stages: small.stages, tasks: small.tasks, attempts: small.attempts });
  });

  test("is put together with what came before its end, in order, its own word the last", () => {
    const [whole = ""] = fold(small).jobs.map((job) => job.whole);
    const first = small.attempts.map((attempt) => ({ ...attempt, token: 1, outcome: "expired" }));
    const old = small.tasks.map((task) => ({ ...task, phase: "FAILED" }));
    const found = unfold({ job: jobRow(0, 1), stages: [], tasks: old, attempts: first }, whole);
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

  test("a large one, and one that has not ended, stay in the tables", () => {
    const [task] = small.tasks;
    ok(task);
    const tasks = Array.from({ length: 20 }, (_, i) => ({ ...task, task: i }));
    const large = fold({ ...small, tasks });
    deepEqual(large.jobs, [{ ...jobRow(0, 1), whole: "" }]);
    deepEqual([large.stages, large.tasks, large.attempts], [small.stages, tasks, small.attempts]);
    const { jobs, ...running } = small;
    equal(jobs.length, 1);
    deepEqual(fold({ ...none, ...running }), { ...none, ...running });
  });
});

test("a history of the version before is taken over", async () => {
  const directory = mkdtempSync(join(tmpdir(), "millrace-history-"));
  try {
    const old = new DatabaseSync(join(directory, "history.db"));
    old.exec("create table cursors (shard integer primary key, epoch integer not null, seq integer not null)");
    for (const name of tableNames) {
      const columns = historyTables[name].columns.map((column) => `"${column.name}" not null`).join(", ");
      old.exec(`create table ${name} (${columns}, primary key (${byKey(historyTables[name])})) without rowid`);
    }
    old.exec("create index jobs_newest on jobs (ended_at_ms, shard, job); pragma user_version = 1");
    const { columns } = historyTables.jobs;
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
    await journal.close();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

/** The history's own database: written after the log, in another file and thread, so that no append waits for it. */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import { byKey, historyTables, listOf, rowOf, storedNames, storedTables } from "#journal/history/columns.ts";
import type { StoredName, TableName, TableSpec } from "#journal/history/columns.ts";
import { jobsPage, jobsStart } from "#journal/history/cursor.ts";
import type { AttemptRow, JobRow, StageRow, StepRow, TaskRow } from "#base/history-rows.ts";
import { jobsViewSql, sqliteDialect } from "#journal/history/jobs-view.ts";
import { tasksIn } from "#journal/history/cells.ts";
import { countOf, countSql, jobsFrom } from "#journal/history/filter.ts";
import { tagsOf, unfold } from "#journal/history/fold.ts";
import type { EndedCount, Epoch, History, JobFilter, JobHistory, Seq } from "#journal/journal.ts";
import type { PackedRows } from "./packing.ts";

export const historyVersion = 7;

const types = { id: "integer", number: "real", text: "text", list: "text" } as const;

const jobsNewest = "create index jobs_newest on jobs (submitted_at_ms, shard, job)";

export const historySchema = [
  "create table cursors (shard integer primary key, epoch integer not null, seq integer not null)",
  ...storedNames.map(tableSql),
  jobsNewest,
  jobsViewSql(sqliteDialect),
].join(";\n");

/** From each version to the next. */
export const historyUpgrades = [
  "alter table jobs add column whole text not null default ''",
  tableSql("pages"),
  `drop index jobs_newest; ${jobsNewest}`,
  [
    "alter table jobs add column seen_at_ms real not null default 0",
    "alter table jobs add column number real not null default 0",
    "alter table jobs add column series text not null default ''",
    "alter table jobs add column tags text not null default ''",
    "update jobs set seen_at_ms = ended_at_ms",
    tableSql("tags"),
  ].join(";"),
  tableSql("submissions"),
  jobsViewSql(sqliteDialect),
];

type TrimmedJob = { job: number; whole: string; tenant: string; tags: string; submitted_at_ms: number };

export type HistoryOps = ReturnType<typeof sqliteHistory>;
type JobsQuery = Parameters<History["jobs"]>[0];

/** `epochOf` asks the log's database, which decides who may write rows. */
export function sqliteHistory(db: DatabaseSync, epochOf: (shard: ShardId) => Epoch | undefined) {
  const upserts = Object.fromEntries(
    storedNames.map((name) => [name, db.prepare(upsertOf(name, storedTables[name]))]),
  ) as Record<StoredName, StatementSync>;
  const cursorOf = db.prepare("select epoch, seq from cursors where shard = ?");
  const putCursor = db.prepare("replace into cursors (shard, epoch, seq) values (?, ?, ?)");
  const placed = (shard: ShardId): { epoch: Epoch; seq: Seq } =>
    (cursorOf.get(shard) as { epoch: Epoch; seq: Seq } | undefined) ?? { epoch: 0, seq: 0 };
  const select = (name: StoredName, where: string, ...args: SQLInputValue[]): Record<string, unknown>[] =>
    db.prepare(`select * from ${name} where ${where} order by ${byKey(storedTables[name])}`).all(...args);
  const pagesOf = (shard: ShardId, job: number): string[] =>
    select("pages", "shard = ? and job = ?", shard, job).map(({ cells }) => String(cells));
  /** The cursor, for the owner that may move it. */
  const mine = (doing: string, shard: ShardId, epoch: Epoch): { epoch: Epoch; seq: Seq } => {
    const current = epochOf(shard);
    const known = placed(shard);
    // The log is another file, so a takeover can happen after it was read. The new owner's epoch is here from its first
    // write on; until then the rows come from the same records.
    if (current !== epoch || epoch < known.epoch) throw new Fault("stale", doing, { shard, epoch, current });
    return known;
  };

  return {
    record(shard: ShardId, at: { readonly epoch: Epoch; readonly throughSeq: Seq }, rows: PackedRows): void {
      const known = mine("record history", shard, at.epoch);
      if (at.throughSeq < known.seq) return;
      for (const name of storedNames) {
        const cells = rows[name];
        const width = storedTables[name].columns.length;
        for (let from = 0; from < cells.length; from += width) upserts[name].run(...cells.slice(from, from + width));
      }
      putCursor.run(shard, at.epoch, at.throughSeq);
    },

    cursor: (shard: ShardId): Seq => placed(shard).seq,

    reset(shard: ShardId, epoch: Epoch): void {
      mine("reset history", shard, epoch);
      putCursor.run(shard, epoch, 0);
    },

    job(shard: ShardId, job: number): JobHistory | undefined {
      const rowsOf = <T>(name: TableName, where: string): T[] =>
        select(name, where, shard, job).map((cells) => rowOf<T>(historyTables[name], cells));
      const ofJob = "shard = ? and job = ?";
      const [found] = select("jobs", ofJob, shard, job);
      if (!found) return undefined;
      const inTables = {
        job: rowOf<JobRow>(historyTables.jobs, found),
        stages: rowsOf<StageRow>("stages", ofJob),
        tasks: rowsOf<TaskRow>("tasks", ofJob),
        attempts: rowsOf<AttemptRow>("attempts", ofJob),
      };
      const whole = unfold(inTables, [...pagesOf(shard, job), String(found["whole"])]);
      const steps = whole.tasks.flatMap(({ task }) => select("steps", "shard = ? and task = ?", shard, task));
      const [kept] = select("submissions", ofJob, shard, job);
      const submission = kept && { submission: String(kept["request"]) };
      return { ...whole, steps: steps.map((cells) => rowOf<StepRow>(historyTables.steps, cells)), ...submission };
    },

    jobs(query: JobsQuery): { jobs: readonly JobRow[]; cursor: string | undefined } {
      const place = jobsStart(query);
      const args: SQLInputValue[] = [];
      const from = jobsFrom(query, place, { prefix: "", add: (cell) => (args.push(cell), "?") });
      const rows = db
        .prepare(`select j.* ${from.sql} order by ${from.newestFirst} limit ?`)
        .all(...args, query.limit + 1);
      return jobsPage(
        rows.map((cells) => rowOf<JobRow>(historyTables.jobs, cells)),
        query.limit,
      );
    },

    count(filter: JobFilter): EndedCount {
      const args: SQLInputValue[] = [];
      const from = jobsFrom(filter, undefined, { prefix: "", add: (cell) => (args.push(cell), "?") });
      const rows = db.prepare(countSql(from.sql)).all(...args) as { phase: string; jobs: number }[];
      return countOf(rows);
    },

    trim(shard: ShardId, endedBeforeMs: number, limit: number): number {
      const old = db
        .prepare(
          `select job, whole, tenant, tags, submitted_at_ms from jobs
            where submitted_at_ms < ?1 and ended_at_ms > 0 and ended_at_ms < ?1 and shard = ?2
            order by submitted_at_ms limit ?3`,
        )
        .all(endedBeforeMs, shard, limit) as TrimmedJob[];
      const steps = db.prepare(
        "delete from steps where shard = ?1 and task in (select task from tasks where shard = ?1 and job = ?2)",
      );
      const others = (["attempts", "tasks", "stages", "pages", "submissions", "jobs"] as const).map((name) =>
        db.prepare(`delete from ${name} where shard = ? and job = ?`),
      );
      const stepsOf = db.prepare("delete from steps where shard = ? and task = ?");
      const tagOf = db.prepare(
        `delete from tags
          where tenant = ? and name = ? and value = ? and submitted_at_ms = ? and shard = ? and job = ?`,
      );
      for (const { job, whole, tenant, tags, submitted_at_ms: submittedAtMs } of old) {
        for (const { name, value } of tagsOf({ tags: listOf(tags), tenant, submittedAtMs, shard, job }))
          tagOf.run(tenant, name, value, submittedAtMs, shard, job);
        for (const task of [...pagesOf(shard, job), whole].flatMap(tasksIn)) stepsOf.run(shard, task);
        for (const statement of [steps, ...others]) statement.run(shard, job);
      }
      return old.length;
    },
  };
}

function tableSql(name: StoredName): string {
  const spec = storedTables[name];
  const columns = spec.columns.map((column) => `"${column.name}" ${types[column.kind]} not null`);
  // Rows as large as pages are stored better in a table with rowids.
  const kind = name === "pages" ? "" : " without rowid";
  return `create table ${name} (${columns.join(", ")}, primary key (${byKey(spec)}))${kind}`;
}

function upsertOf(name: StoredName, spec: TableSpec): string {
  const names = spec.columns.map((column) => `"${column.name}"`);
  const updates = spec.columns
    .filter((column) => !spec.key.includes(column.name))
    .map((column) => `"${column.name}" = excluded."${column.name}"`);
  const update = updates.length === 0 ? "nothing" : `update set ${updates.join(", ")}`;
  return `insert into ${name} (${names.join(", ")}) values (${names.map(() => "?").join(", ")})
    on conflict (${byKey(spec)}) do ${update}`;
}

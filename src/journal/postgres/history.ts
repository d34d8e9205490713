/**
 * History in PostgreSQL. One statement writes many rows of a table: its parameters are whole columns.
 */
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import { byKey, cellOf, historyTables, listOf, rowOf, storedNames, storedTables } from "#journal/history/columns.ts";
import type { Column, StoredName, TableName } from "#journal/history/columns.ts";
import { jobsPage, jobsStart } from "#journal/history/cursor.ts";
import type { AttemptRow, JobRow, StageRow, StepRow, TaskRow } from "#base/history-rows.ts";
import { tasksIn } from "#journal/history/cells.ts";
import { countOf, countSql, jobsFrom, type SqlWords } from "#journal/history/filter.ts";
import { fold, tagsOf, unfold, type StoredRows } from "#journal/history/fold.ts";
import type { Epoch, History, Seq } from "#journal/journal.ts";
import type { Lane, Run } from "./lane.ts";
import { float8Array, int8Array, textArray } from "./values.ts";

type HistoryPosition = { readonly epoch: Epoch; readonly throughSeq: Seq };
type TrimmedJob = { job: number; whole: string; tenant: string; tags: string; submitted_at_ms: number };
type FenceCheck = { current: boolean; behind: boolean };

const arrays = { id: "int8[]", number: "float8[]", text: "text[]", list: "text[]" } as const;
const rowsMax = 5_000;
/**
 * Duplicate rows are rare (a statement with the same row twice, or a job that is written already): handle them when
 * they happen. Checking first would cost a third more.
 */
const rowTwice = ["21000", "23505"];
const writtenOnce: ReadonlySet<StoredName> = new Set(["jobs", "pages"]);
const pagesOnce: ReadonlySet<StoredName> = new Set(["pages"]);

export function historyIn({ lane, schema }: { readonly lane: Lane; readonly schema: string }): History {
  /** Shards with tracked jobs, whose rows are written more than once. */
  const rewriting = new Set<ShardId>();
  const selectAll = async <T>(run: Run, name: TableName, where: string, values: readonly unknown[]): Promise<T[]> => {
    const rows = await run({
      text: `select * from ${schema}.${name} where ${where} order by ${byKey(historyTables[name])}`,
      values,
    });
    return rows.map((cells) => rowOf<T>(historyTables[name], cells));
  };
  const pagesOf = async (run: Run, values: readonly unknown[]): Promise<string[]> => {
    const where = "where shard = $1::int8 and job = $2::int8 order by seq, part";
    const rows = await run<{ cells: string }>({ text: `select cells from ${schema}.pages ${where}`, values });
    return rows.map(({ cells }) => cells);
  };
  return {
    record: (shard, at, rows) =>
      record(shard, at, fold(rows, at.throughSeq), rewriting.has(shard) ? pagesOnce : writtenOnce).catch(
        (error: unknown) => {
          if (!isFault(error) || !rowTwice.includes(String(error.facts["sqlState"]))) throw error;
          rewriting.add(shard);
          return record(shard, at, withoutRepeats(fold(rows, at.throughSeq)), new Set());
        },
      ),

    async cursor(shard) {
      const [found] = await lane.read<{ seq: number }>("read history cursor", {
        text: `select seq from ${schema}.history_cursors where shard = $1::int4`,
        values: [shard],
      });
      return found?.seq ?? 0;
    },

    async reset(shard, epoch) {
      const moved = await lane.write("reset history", { text: resetSql(schema), values: [shard, epoch] });
      if (moved.length === 0) throw new Fault("stale", "reset history", { shard, epoch });
    },

    job: (shard, job) =>
      lane.transaction("read job history", async (run) => {
        await run({ text: "set transaction isolation level repeatable read, read only" });
        const ofJob = "shard = $1::int8 and job = $2::int8";
        const values = [shard, job];
        const [found] = await run({ text: `select * from ${schema}.jobs where ${ofJob}`, values });
        if (!found) return undefined;
        const inTables = {
          job: rowOf<JobRow>(historyTables.jobs, found),
          stages: await selectAll<StageRow>(run, "stages", ofJob, values),
          tasks: await selectAll<TaskRow>(run, "tasks", ofJob, values),
          attempts: await selectAll<AttemptRow>(run, "attempts", ofJob, values),
        };
        const whole = unfold(inTables, [...(await pagesOf(run, values)), String(found["whole"])]);
        const ofTasks = [shard, int8Array(whole.tasks.map(({ task }) => task))];
        const steps = "shard = $1::int8 and task = any ($2::int8[])";
        const [kept] = await run<{ request: string }>({
          text: `select request from ${schema}.submissions where ${ofJob}`,
          values,
        });
        const submission = kept && { submission: kept.request };
        return { ...whole, steps: await selectAll<StepRow>(run, "steps", steps, ofTasks), ...submission };
      }),

    async jobs(query) {
      const place = jobsStart(query);
      const values: unknown[] = [query.limit + 1];
      const from = jobsFrom(query, place, parameters(values));
      const rows = await lane.read("list jobs", {
        text: `select j.* ${from.sql} order by ${from.newestFirst} limit $1::int4`,
        values,
      });
      return jobsPage(
        rows.map((cells) => rowOf<JobRow>(historyTables.jobs, cells)),
        query.limit,
      );
    },

    async count(filter) {
      const values: unknown[] = [];
      const from = jobsFrom(filter, undefined, parameters(values));
      return countOf(
        await lane.read<{ phase: string; jobs: number }>("count jobs", { text: countSql(from.sql), values }),
      );
    },

    async trim(shard, endedBeforeMs, limit) {
      return await lane.transaction("trim history", async (run) => {
        const old = await run<TrimmedJob>({
          text: `select job, whole, tenant, tags, submitted_at_ms from ${schema}.jobs
            where shard = $1::int8 and submitted_at_ms < $2::float8 and ended_at_ms > 0 and ended_at_ms < $2::float8
            order by submitted_at_ms limit $3::int4`,
          values: [shard, endedBeforeMs, limit],
        });
        const values = [shard, int8Array(old.map(({ job }) => job))];
        const pages = await run<{ cells: string }>({
          text: `select cells from ${schema}.pages where shard = $1::int8 and job = any ($2::int8[])`,
          values,
        });
        const tasks = `select task from ${schema}.tasks where shard = $1::int8 and job = any ($2::int8[])`;
        await run({
          text: `delete from ${schema}.steps
            where shard = $1::int8 and (task = any (array(${tasks})) or task = any ($3::int8[]))`,
          values: [
            ...values,
            int8Array([...pages.map(({ cells }) => cells), ...old.map(({ whole }) => whole)].flatMap(tasksIn)),
          ],
        });
        await trimTags(run, shard, old);
        for (const name of ["attempts", "tasks", "stages", "pages", "submissions", "jobs"] as const)
          await run({
            text: `delete from ${schema}.${name} where shard = $1::int8 and job = any ($2::int8[])`,
            values,
          });
        return old.length;
      });
    },
  };

  async function trimTags(run: Run, shard: ShardId, old: readonly TrimmedJob[]): Promise<void> {
    const tags = old.flatMap(({ job, tenant, tags: list, submitted_at_ms: submittedAtMs }) =>
      tagsOf({ tags: listOf(list), tenant, submittedAtMs, shard, job }),
    );
    if (tags.length === 0) return;
    const { columns } = storedTables.tags;
    const own = columns.map(({ name }) => `"${name}"`).join(", ");
    await run({
      text: `delete from ${schema}.tags where (${own}) in
        (select * from unnest(${columns.map(({ kind }, i) => `$${i + 1}::${arrays[kind]}`).join(", ")}))`,
      values: columns.map((column) => columnOf(column, tags)),
    });
  }

  /** Adds to the statement's values, and says how the statement names them. */
  function parameters(values: unknown[]): SqlWords {
    return { prefix: `${schema}.`, add: (cell, type) => `$${values.push(cell)}::${type}` };
  }

  function record(
    shard: ShardId,
    { epoch, throughSeq }: HistoryPosition,
    rows: StoredRows,
    areNew = writtenOnce,
  ): Promise<void> {
    const values = [shard, epoch, throughSeq];
    // Log, snapshots and trimming are on the same server, and rely only on rows that were committed before: their own
    // commits make these durable, too (J5).
    return lane.lazyTransaction("record history", async (run) => {
      const [found] = await run<FenceCheck>({ name: "history-place", text: placeSql(schema), values });
      if (!found?.current) throw new Fault("stale", "record history", { shard, epoch });
      if (found.behind) return;
      for (const name of storedNames) await put(run, name, rows[name], areNew.has(name));
      const moved = await run({ name: "history-move", text: moveSql(schema), values });
      if (moved.length === 0) throw new Fault("stale", "record history", { shard, epoch });
    });
  }

  async function put(run: Run, name: StoredName, rows: readonly object[], areNew: boolean): Promise<void> {
    const { columns } = storedTables[name];
    for (let from = 0; from < rows.length; from += rowsMax) {
      const slice = rows.slice(from, from + rowsMax);
      await run({
        name: `${areNew ? "insert" : "upsert"}-${name}`,
        text: areNew ? insertSql(schema, name) : upsertSql(schema, name),
        values: columns.map((column) => columnOf(column, slice)),
      });
    }
  }
}

/**
 * The epoch is checked before and after, without a lock: a lock held while thousands of rows are written would block
 * lease renewals. The second check notices a takeover in between, and a takeover after it waits for our locked rows
 * until we have committed, so old rows never overwrite newer ones (K8).
 */
const placeSql = (schema: string): string => `
  select s.epoch = $2::int8 as current, coalesce(c.seq > $3::int8, false) as behind
  from ${schema}.shards s left join ${schema}.history_cursors c using (shard) where s.shard = $1::int4`;

const moveSql = (schema: string): string => `
  insert into ${schema}.history_cursors as c (shard, seq)
  select shard, $3::int8 from ${schema}.shards where shard = $1::int4 and epoch = $2::int8
  on conflict (shard) do update set seq = greatest(c.seq, excluded.seq) returning seq`;

const resetSql = (schema: string): string => `
  with owned as materialized (
    select shard from ${schema}.shards where shard = $1::int4 and epoch = $2::int8 for share
  )
  insert into ${schema}.history_cursors (shard, seq) select shard, 0 from owned
  on conflict (shard) do update set seq = 0 returning seq`;

/** Of several rows with one key the last one stays. */
function withoutRepeats(rows: StoredRows): StoredRows {
  const lastOfEach = (name: StoredName): readonly object[] => {
    const key = storedTables[name].columns.filter((column) => storedTables[name].key.includes(column.name));
    const keyOf = (row: object): string => key.map((column) => cellOf(row, column)).join();
    return [...new Map(rows[name].map((row: object) => [keyOf(row), row])).values()];
  };
  return Object.fromEntries(storedNames.map((name) => [name, lastOfEach(name)])) as unknown as StoredRows;
}

function columnOf(column: Column, rows: readonly object[]): Buffer {
  const cells = rows.map((row) => cellOf(row, column));
  if (column.kind === "id") return int8Array(cells as number[]);
  return column.kind === "number" ? float8Array(cells as number[]) : textArray(cells as string[]);
}

function insertSql(schema: string, name: StoredName): string {
  const { columns } = storedTables[name];
  const names = columns.map((column) => `"${column.name}"`).join(", ");
  const parameters = columns.map(({ kind }, i) => `$${i + 1}::${arrays[kind]}`).join(", ");
  return `insert into ${schema}.${name} (${names}) select * from unnest(${parameters})`;
}

function upsertSql(schema: string, name: StoredName): string {
  const spec = storedTables[name];
  const updates = spec.columns
    .filter((column) => !spec.key.includes(column.name))
    .map((column) => `"${column.name}" = excluded."${column.name}"`)
    .join(", ");
  const update = updates === "" ? "nothing" : `update set ${updates}`;
  return `${insertSql(schema, name)} on conflict (${byKey(spec)}) do ${update}`;
}

/**
 * How the history's rows are stored in an SQL store. The rows of one job are only ever read together, for the page of
 * that job; as separate rows, with tables and indices of their own, they cost the store four times as much. So
 *
 * - a small job is one row, which includes its rows of the other tables that are written with it;
 * - many rows of one job that are written together are one row, a page of the job;
 * - rows that are written separately are in the tables.
 *
 * A row may be in several of these, because a task ran again, or because history was rewritten in other portions: the
 * newest counts.
 */
import type { AttemptRow, HistoryRows, JobRow, StageRow, SubmissionRow, TaskRow } from "#base/history-rows.ts";
import { added, nothing } from "#base/short-list.ts";
import { readCells, writeCells, type JobCells } from "./cells.ts";
import type { JobHistory, Seq } from "#journal/journal.ts";

/** `whole`: the job's rows of other tables, or nothing. */
export type StoredJob = JobRow & { readonly whole: string };
/** Rows of a job that were written with the log up to `seq`; `part` numbers the pages if there were several. */
export type StoredPage = {
  readonly shard: number;
  readonly job: number;
  readonly seq: Seq;
  readonly part: number;
  readonly cells: string;
};
/** A tag of a job, where it is looked up. */
export type StoredTag = Pick<JobRow, "shard" | "job" | "tenant" | "submittedAtMs"> & {
  readonly name: string;
  readonly value: string;
};
export type StoredRows = Omit<HistoryRows, "jobs"> & {
  readonly submissions: readonly SubmissionRow[];
  readonly jobs: readonly StoredJob[];
  readonly pages: readonly StoredPage[];
  readonly tags: readonly StoredTag[];
};

/** More rows than this become a page; fewer are stored in the job's own row. */
const rowsMin = 16;
/** Rows of each kind. A page stays far below the cell size limit of a store, whatever the results contain. */
const pageRowsMax = 256;
const pageCharsMax = 1 << 20;

class JobRows implements JobCells {
  readonly shard: number;
  stages: readonly StageRow[] = nothing;
  tasks: readonly TaskRow[] = nothing;
  attempts: readonly AttemptRow[] = nothing;
  whole = "";

  constructor(shard: number) {
    this.shard = shard;
  }

  get size(): number {
    return this.stages.length + this.tasks.length + this.attempts.length;
  }
}

export function fold(rows: HistoryRows, seq: Seq): StoredRows {
  const byJob = new Map<number, JobRows>();
  const ownOf = ({ shard, job }: { readonly shard: number; readonly job: number }): JobRows => {
    let own = byJob.get(job);
    if (!own) byJob.set(job, (own = new JobRows(shard)));
    return own;
  };
  for (const row of rows.stages) {
    const own = ownOf(row);
    own.stages = added(own.stages, row);
  }
  for (const row of rows.tasks) {
    const own = ownOf(row);
    own.tasks = added(own.tasks, row);
  }
  for (const row of rows.attempts) {
    const own = ownOf(row);
    own.attempts = added(own.attempts, row);
  }
  const ended = new Set<number>();
  for (const { job, endedAtMs } of rows.jobs) if (endedAtMs > 0) ended.add(job);
  const apart = { stages: [] as StageRow[], tasks: [] as TaskRow[], attempts: [] as AttemptRow[] };
  const pages: StoredPage[] = [];
  for (const [job, own] of byJob)
    if (own.size > rowsMin) addPages(pages, job, own, seq);
    else if (ended.has(job)) own.whole = writeCells(own);
    else {
      apart.stages.push(...own.stages);
      apart.tasks.push(...own.tasks);
      apart.attempts.push(...own.attempts);
    }
  // Only jobs that are tracked have more than one row, and of those the last one counts.
  const { submissions = [] } = rows;
  const newest = submissions.length === 0 ? rows.jobs : [...new Map(rows.jobs.map((job) => [job.job, job])).values()];
  const jobs = newest.map((job): StoredJob => withWhole(job, byJob.get(job.job)?.whole ?? ""));
  return { jobs, ...apart, steps: rows.steps, pages, tags: newest.flatMap(tagsOf), submissions };
}

const untagged: readonly StoredTag[] = [];

/** Where a job's tags are looked up. */
export function tagsOf({ tags, tenant, submittedAtMs, shard, job }: Tagged): readonly StoredTag[] {
  if (tags.length === 0) return untagged;
  return tags.map((text) => {
    const at = text.indexOf("=");
    return { shard, job, tenant, submittedAtMs, name: text.slice(0, at), value: text.slice(at + 1) };
  });
}

type Tagged = Pick<JobRow, "tags" | "tenant" | "submittedAtMs" | "shard" | "job">;

function addPages(pages: StoredPage[], job: number, own: JobRows, seq: Seq): void {
  const { shard } = own;
  let part = 0;
  const add = (rows: JobCells): void => {
    const cells = writeCells(rows);
    const longest = Math.max(rows.stages.length, rows.tasks.length, rows.attempts.length);
    if (cells.length <= pageCharsMax || longest === 1) return void pages.push({ shard, job, seq, part: part++, cells });
    const middle = Math.ceil(longest / 2);
    add(between(rows, 0, middle));
    add(between(rows, middle, longest));
  };
  const longest = Math.max(own.stages.length, own.tasks.length, own.attempts.length);
  for (let from = 0; from < longest; from += pageRowsMax) add(between(own, from, from + pageRowsMax));
}

const between = ({ stages, tasks, attempts }: JobCells, from: number, to: number): JobCells => ({
  stages: stages.slice(from, to),
  tasks: tasks.slice(from, to),
  attempts: attempts.slice(from, to),
});

/** Field by field: a spread for each job costs more than everything else. */
const withWhole = (job: JobRow, whole: string): StoredJob => ({
  shard: job.shard,
  job: job.job,
  tenant: job.tenant,
  door: job.door,
  name: job.name,
  phase: job.phase,
  reason: job.reason,
  priority: job.priority,
  submittedAtMs: job.submittedAtMs,
  endedAtMs: job.endedAtMs,
  seenAtMs: job.seenAtMs,
  tags: job.tags,
  series: job.series,
  number: job.number,
  whole,
});

/**
 * Merges a job's rows from the tables with those from its pages and its own row, in the order in which they were
 * written.
 */
export function unfold(found: Omit<JobHistory, "steps">, cells: readonly string[]): Omit<JobHistory, "steps"> {
  const { shard, job } = found.job;
  const all = [found, ...cells.filter((text) => text !== "").map((text) => readCells(shard, job, text))];
  if (all.length === 1) return found;
  return {
    job: found.job,
    stages: newestOfEach(
      all.flatMap(({ stages }) => stages),
      ({ stage }) => [stage],
    ),
    tasks: newestOfEach(
      all.flatMap(({ tasks }) => tasks),
      ({ task }) => [task],
    ),
    attempts: newestOfEach(
      all.flatMap(({ attempts }) => attempts),
      ({ task, token }) => [task, token],
    ),
  };
}

type Versioned = { readonly generation?: number; readonly endedAtMs: number };

/** One row for each key, in key order. */
function newestOfEach<T extends Versioned>(rows: readonly T[], keyOf: (row: T) => readonly number[]): T[] {
  const byKey = new Map<string, T>();
  for (const row of rows) {
    const key = keyOf(row).join();
    const other = byKey.get(key);
    if (!other || isNewer(other, row)) byKey.set(key, row);
  }
  return [...byKey.values()].toSorted((a, b) => {
    const [one, other] = [keyOf(a), keyOf(b)];
    const at = one.findIndex((part, i) => part !== other[i]);
    return at === -1 ? 0 : (one[at] ?? 0) - (other[at] ?? 0);
  });
}

/** Of two rows that look equally old, the one written later wins. */
const isNewer = (before: Versioned, row: Versioned): boolean =>
  (row.generation ?? 0) === (before.generation ?? 0)
    ? row.endedAtMs >= before.endedAtMs
    : (row.generation ?? 0) > (before.generation ?? 0);

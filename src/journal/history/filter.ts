/** Which jobs a list or a count means: for a row in memory, and as SQL for the stores that speak it. */
import type { JobRow } from "#base/history-rows.ts";
import type { EndedCount, JobFilter } from "#journal/journal.ts";
import type { JobPosition } from "./cursor.ts";

/** A count goes through this many jobs at most. */
export const countedMax = 100_000;

export const isMeant = (filter: JobFilter, row: JobRow): boolean =>
  (filter.tenant === undefined || row.tenant === filter.tenant) &&
  (filter.door === undefined || row.door === filter.door) &&
  (filter.phase === undefined || row.phase === filter.phase) &&
  (filter.fromMs === undefined || row.submittedAtMs >= filter.fromMs) &&
  (filter.toMs === undefined || row.submittedAtMs < filter.toMs) &&
  (filter.tags ?? []).every(({ name, value }) => row.tags.includes(`${name}=${value}`));

/** What differs between the stores: where the tables are, and how a statement names a value that is added to it. */
export type SqlWords = {
  readonly prefix: string;
  readonly add: (cell: string | number, type: "text" | "float8" | "int8") => string;
};

/**
 * `from … where …` for jobs `j` that are meant and lie behind `place`. With tags, the rows of the first one lead: they
 * are in the order of the list, and only the tenant's own.
 */
export function jobsFrom(
  filter: JobFilter,
  place: JobPosition | undefined,
  { prefix, add }: SqlWords,
): { readonly sql: string; readonly newestFirst: string } {
  const [first, ...others] = filter.tags ?? [];
  const lead = first ? "t" : "j";
  const same = "submitted_at_ms = t.submitted_at_ms and shard = t.shard and job = t.job";
  const where: string[] = [];
  if (filter.tenant !== undefined) where.push(`${lead}.tenant = ${add(filter.tenant, "text")}`);
  if (first) where.push(`t.name = ${add(first.name, "text")}`, `t.value = ${add(first.value, "text")}`);
  for (const { name, value } of others)
    where.push(`exists (select 1 from ${prefix}tags where tenant = t.tenant and name = ${add(name, "text")}
      and value = ${add(value, "text")} and ${same})`);
  if (filter.door !== undefined) where.push(`j.door = ${add(filter.door, "text")}`);
  if (filter.phase !== undefined) where.push(`j.phase = ${add(filter.phase, "text")}`);
  if (filter.fromMs !== undefined) where.push(`${lead}.submitted_at_ms >= ${add(filter.fromMs, "float8")}`);
  if (filter.toMs !== undefined) where.push(`${lead}.submitted_at_ms < ${add(filter.toMs, "float8")}`);
  if (place)
    where.push(`(${lead}.submitted_at_ms, ${lead}.shard, ${lead}.job) <
      (${add(place.submittedAtMs, "float8")}, ${add(place.shard, "int8")}, ${add(place.job, "int8")})`);
  const tables = first
    ? `${prefix}tags t join ${prefix}jobs j on j.shard = t.shard and j.job = t.job`
    : `${prefix}jobs j`;
  return {
    sql: `from ${tables}${where.length === 0 ? "" : ` where ${where.join(" and ")}`}`,
    newestFirst: `${lead}.submitted_at_ms desc, ${lead}.shard desc, ${lead}.job desc`,
  };
}

/** Counts what `from` gives, of jobs that have ended. */
export function countSql(from: string): string {
  const and = from.includes(" where ") ? "and" : "where";
  return `
    select phase, count(*) as jobs
    from (select j.phase ${from} ${and} j.ended_at_ms > 0 limit ${countedMax + 1}) ended
    group by phase`;
}

export function countOf(rows: readonly { readonly phase: string; readonly jobs: number }[]): EndedCount {
  const phases = rows.map(({ phase, jobs }) => ({ phase, jobs: Number(jobs) }));
  return { phases, capped: phases.reduce((sum, { jobs }) => sum + jobs, 0) > countedMax };
}

/**
 * Pages through jobs, newest first: the position after a job, as an opaque string. A job's submission time never
 * changes, so a position means the same while jobs end and leave memory.
 */
import { Fault } from "#base/fault.ts";
import type { JobRow } from "#base/history-rows.ts";

export type JobPosition = Pick<JobRow, "submittedAtMs" | "shard" | "job">;

export const jobsPageMax = 1000;

export const newestFirst = (a: JobPosition, b: JobPosition): number =>
  b.submittedAtMs - a.submittedAtMs || b.shard - a.shard || b.job - a.job;

export const encodeCursor = ({ submittedAtMs, shard, job }: JobPosition): string =>
  Buffer.from(`h2.${submittedAtMs}.${shard}.${job}`).toString("base64url");

export function decodeCursor(cursor: string): JobPosition {
  const bad = new Fault("invalid", "list jobs", { why: "not a cursor of this list" });
  if (cursor.length > 100) throw bad;
  const match = /^h2\.(-?\d{1,16}(?:\.\d{1,17})?)\.(\d{1,10})\.(\d{1,16})$/.exec(
    Buffer.from(cursor, "base64url").toString("latin1"),
  );
  if (!match) throw bad;
  const place = { submittedAtMs: Number(match[1]), shard: Number(match[2]), job: Number(match[3]) };
  if (encodeCursor(place) !== cursor) throw bad;
  return place;
}

/** Where to begin; undefined for the newest job. */
export function jobsStart(query: {
  readonly limit: number;
  readonly cursor?: string | undefined;
}): JobPosition | undefined {
  if (!Number.isInteger(query.limit) || query.limit < 1 || query.limit > jobsPageMax)
    throw new Fault("invalid", "list jobs", { limit: query.limit, limitMax: jobsPageMax });
  return query.cursor === undefined ? undefined : decodeCursor(query.cursor);
}

/** `rows` has one more than the limit if there are more. */
export function jobsPage(
  rows: readonly JobRow[],
  limit: number,
): { jobs: readonly JobRow[]; cursor: string | undefined } {
  const jobs = rows.slice(0, limit);
  const last = jobs.at(-1);
  return { jobs, cursor: rows.length > limit && last ? encodeCursor(last) : undefined };
}

/**
 * Lists jobs, newest first: jobs in the shards' memory and in history, in one order that does not change when a job
 * ends. Memory is read before history, and a job is in history before it leaves memory: so each job is seen, and only
 * once.
 */
import { Fault, isFault } from "#base/fault.ts";
import { formatJob, type ShardId } from "#base/ids.ts";
import type { JobPhase, SeriesNumber, Tag } from "#kernel/model/model.ts";
import { hasTags } from "#kernel/model/tag-index.ts";
import type { JobLine, Query } from "#kernel/read/query.ts";
import type { JobRow } from "#base/history-rows.ts";
import { decodeCursor, encodeCursor, newestFirst, type JobPosition } from "#journal/history/cursor.ts";
import type { Directory } from "./directory.ts";
import { tagOf } from "./history.ts";

/** Which jobs: with all that is given. */
export type JobsFilter = {
  readonly tenant?: string;
  readonly door?: string;
  readonly phase?: JobPhase;
  readonly tags?: readonly Tag[];
  /** Submitted from this time on, and before that one. */
  readonly fromMs?: number;
  readonly toMs?: number;
};

export type JobsQuery = JobsFilter & {
  readonly limit: number;
  /** The cursor that the previous page returned. */
  readonly cursor?: string;
};

export type ListedJob = {
  readonly jobId: string;
  readonly live: boolean;
  readonly tenant: string;
  readonly door: string;
  readonly name: string;
  readonly phase: string;
  readonly priority: number;
  readonly submittedAtMs: number;
  readonly endedAtMs: number | undefined;
  /** Undefined if only history has the job. */
  readonly tasks: number | undefined;
  readonly done: number | undefined;
  readonly tags?: readonly Tag[] | undefined;
  readonly series?: SeriesNumber | undefined;
};

export type JobPage = {
  readonly jobs: readonly ListedJob[];
  readonly cursor: string | undefined;
  /** Shards that did not answer: their live jobs are not in the list. */
  readonly unreachable: readonly ShardId[];
};

type LivePage = Omit<Extract<Query, { kind: "jobs" }>, "kind">;
type ListPorts = {
  readonly directory: Directory;
  readonly live: (shard: ShardId, page: LivePage) => Promise<{ readonly jobs: readonly JobLine[] }>;
};

/** Where the last page stopped, and the lowest job numbers it has shown per shard: the next page starts there. */
type PageStart = { readonly after?: string; readonly before?: Readonly<Record<string, number>> };

export const listLimitMax = 1_000;
const shardsAtOnce = 16;

export async function listJobs(wanted: JobsQuery, ports: ListPorts): Promise<JobPage> {
  const limit = Math.max(1, Math.min(wanted.limit, listLimitMax));
  const place = readPlace(wanted.cursor);
  const { found: live, unreachable } = await liveJobs(wanted, limit, place, ports);
  const known = new Set(live.map(({ listed }) => listed.jobId));
  // What has not ended is in memory: history's word counts only where the shard did not answer.
  const isTrue = ({ shard, endedAtMs }: JobRow): boolean => endedAtMs > 0 || unreachable.includes(shard);
  const rows = await pastJobs(wanted, limit, place, ports);
  const past = rows.filter(isTrue).map(remembered);
  const found = [...live, ...past.filter(({ listed }) => !known.has(listed.jobId))].toSorted(newestFirst);
  const page = found.slice(0, limit);
  const jobs = page.map(({ listed }) => listed);
  // A page is short where rows were left out: then the last row read says where to go on.
  const last = page.length < limit && rows.length === limit ? rows.at(-1) : page.at(-1);
  if (!last || (page.length < limit && rows.length < limit)) return { jobs, cursor: undefined, unreachable };
  const before = { ...place.before };
  for (const { shard, job, listed } of page) if (listed.live) before[shard] = job; // decreases with each row
  return { jobs, cursor: writePlace({ after: encodeCursor(last), before }), unreachable };
}

/** With its sort position in the list. */
type Found = JobPosition & { readonly listed: ListedJob };

async function liveJobs(wanted: JobsQuery, limit: number, place: PageStart, { directory, live }: ListPorts) {
  const { shards } = await directory.cluster();
  const after = place.after === undefined ? undefined : decodeCursor(place.after);
  const found: Found[] = [];
  const unreachable: ShardId[] = [];
  const ask = async (shard: ShardId): Promise<void> => {
    try {
      const lines = await liveOf(shard, wanted, limit, { after, before: place.before?.[shard] }, live);
      found.push(...lines.map((line) => living(shard, line)));
    } catch (error) {
      if (!isFault(error, "unavailable")) throw error;
      unreachable.push(shard);
    }
  };
  for (let from = 0; from < shards; from += shardsAtOnce)
    await Promise.all(Array.from({ length: Math.min(shardsAtOnce, shards - from) }, (_, i) => ask(from + i)));
  return { found, unreachable: unreachable.toSorted((a, b) => a - b) };
}

const only = ({ limit: _limit, cursor: _cursor, ...filter }: JobsQuery): JobsFilter => filter;

/**
 * Enough of one shard's jobs to fill a page. An older node filters by tenant and door only: what it lists besides is
 * left out here, so this may take several requests.
 */
async function liveOf(
  shard: ShardId,
  wanted: JobsQuery,
  limit: number,
  place: { readonly after: JobPosition | undefined; readonly before: number | undefined },
  live: ListPorts["live"],
): Promise<readonly JobLine[]> {
  const isAsked = isAskedBy(wanted);
  const { after } = place;
  const found: JobLine[] = [];
  for (let { before } = place; found.length < limit;) {
    const { jobs } = await live(shard, { limit, ...only(wanted), ...(before === undefined ? {} : { before }) });
    for (const line of jobs) {
      // Jobs submitted after the first page was read sort before it.
      if (after && newestFirst(after, { shard, ...line }) >= 0) continue;
      if (isAsked(line)) found.push(line);
    }
    before = jobs.at(-1)?.job;
    if (jobs.length < limit || before === undefined) break;
  }
  return found;
}

const isAskedBy =
  ({ phase, tags, fromMs = Number.NEGATIVE_INFINITY, toMs = Number.POSITIVE_INFINITY }: JobsFilter) =>
  (line: JobLine): boolean =>
    (phase === undefined || line.phase === phase) &&
    (tags === undefined || hasTags(line.tags, tags)) &&
    line.submittedAtMs >= fromMs &&
    line.submittedAtMs < toMs;

async function pastJobs(wanted: JobsQuery, limit: number, { after }: PageStart, { directory }: ListPorts) {
  return (await directory.history.jobs({ ...only(wanted), limit, cursor: after })).jobs;
}

function living(shard: ShardId, { job, ...line }: JobLine): Found {
  const { submittedAtMs } = line;
  return { shard, job, submittedAtMs, listed: { jobId: formatJob(shard, job), live: true, ...line } };
}

function remembered({ shard, job, reason: _, seenAtMs: __, tags, series, number, ...row }: JobRow): Found {
  const { submittedAtMs } = row;
  const extras = {
    ...(tags.length > 0 && { tags: tags.map(tagOf) }),
    ...(number > 0 && { series: { name: series, number } }),
  };
  const listed = { ...row, endedAtMs: row.endedAtMs || undefined, tasks: undefined, done: undefined, ...extras };
  return { shard, job, submittedAtMs, listed: { jobId: formatJob(shard, job), live: false, ...listed } };
}

const writePlace = (place: PageStart): string => Buffer.from(JSON.stringify(place)).toString("base64url");

function readPlace(cursor: string | undefined): PageStart {
  if (cursor === undefined) return {};
  try {
    const { after, before } = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8")) as Record<string, unknown>;
    if (typeof after === "string" && areNumbers(before)) return { after, before };
  } catch {
    // is refused like any other foreign cursor
  }
  throw new Fault("invalid", "list jobs", { why: "this is not a cursor of this list" });
}

const areNumbers = (given: unknown): given is Readonly<Record<string, number>> =>
  typeof given === "object" && given !== null && Object.values(given).every(Number.isSafeInteger);

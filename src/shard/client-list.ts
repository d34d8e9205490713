/**
 * Listing jobs: first what shards hold in memory, newest first over all of them, then what history has kept, newest
 * end first and without what memory still has. A job that leaves memory between two pages may be seen twice, and is
 * never missed.
 */
import { Fault, isFault } from "#base/fault.ts";
import { formatJob, type ShardId } from "#base/ids.ts";
import type { JobPhase } from "#kernel/model.ts";
import type { JobLine, Query } from "#kernel/query.ts";
import type { JobRow } from "#base/history-rows.ts";
import type { Directory } from "./client-directory.ts";

export type JobsQuery = {
  readonly limit: number;
  readonly tenant?: string;
  readonly door?: string;
  readonly phase?: JobPhase;
  /** What the page before gave back. */
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
  /** Unknown for what only history remembers. */
  readonly tasks: number | undefined;
  readonly done: number | undefined;
};

export type JobPage = {
  readonly jobs: readonly ListedJob[];
  readonly cursor: string | undefined;
  /** Shards that did not answer: their living jobs are not in the list. */
  readonly unreachable: readonly ShardId[];
};

type LivePage = Omit<Extract<Query, { kind: "jobs" }>, "kind">;
type ListPorts = {
  readonly directory: Directory;
  readonly live: (shard: ShardId, page: LivePage) => Promise<{ readonly jobs: readonly JobLine[] }>;
};

/** Where the last page stopped: below these numbers in each shard, or at this place in history. */
type Place = { readonly before?: Readonly<Record<string, number>>; readonly history?: string };

export const listLimitMax = 1_000;
const shardsAtOnce = 16;

export async function listJobs(asked: JobsQuery, ports: ListPorts): Promise<JobPage> {
  const limit = Math.max(1, Math.min(asked.limit, listLimitMax));
  const place = readPlace(asked.cursor);
  const live = place.history === undefined ? await liveJobs(asked, limit, place, ports) : { jobs: [], unreachable: [] };
  const { unreachable } = live;
  const page = live.jobs.slice(0, limit);
  if (page.length === limit) {
    const before = { ...place.before };
    for (const { shard, line } of page) before[shard] = Math.min(before[shard] ?? Number.POSITIVE_INFINITY, line.job);
    return { jobs: page.map(listed), cursor: writePlace({ before }), unreachable };
  }
  const past = await pastJobs(asked, limit - page.length, place, ports);
  const shown = new Set(page.map(({ shard, line }) => formatJob(shard, line.job)));
  for (const jobId of await stillLiving(past.jobs, asked, ports)) shown.add(jobId);
  const jobs = [...page.map(listed), ...past.jobs.map(remembered).filter(({ jobId }) => !shown.has(jobId))];
  return { jobs, cursor: past.cursor === undefined ? undefined : writePlace({ history: past.cursor }), unreachable };
}

type Live = { readonly shard: ShardId; readonly line: JobLine };

async function liveJobs(asked: JobsQuery, limit: number, place: Place, { directory, live }: ListPorts) {
  const { shards } = await directory.cluster();
  const jobs: Live[] = [];
  const unreachable: ShardId[] = [];
  const ask = async (shard: ShardId): Promise<void> => {
    try {
      jobs.push(...(await liveOf(shard, asked, limit, place.before?.[shard], live)));
    } catch (error) {
      if (!isFault(error, "unavailable")) throw error;
      unreachable.push(shard);
    }
  };
  for (let from = 0; from < shards; from += shardsAtOnce)
    await Promise.all(Array.from({ length: Math.min(shardsAtOnce, shards - from) }, (_, i) => ask(from + i)));
  jobs.sort((a, b) => b.line.submittedAtMs - a.line.submittedAtMs || a.shard - b.shard || b.line.job - a.line.job);
  return { jobs, unreachable: unreachable.toSorted((a, b) => a - b) };
}

const only = ({ tenant, door }: JobsQuery): Pick<LivePage, "tenant" | "door"> => ({
  ...(tenant === undefined ? {} : { tenant }),
  ...(door === undefined ? {} : { door }),
});

/** Enough of one shard's jobs to fill a page; a phase is not asked of the shard, so it may take several turns. */
async function liveOf(
  shard: ShardId,
  asked: JobsQuery,
  limit: number,
  from: number | undefined,
  live: ListPorts["live"],
) {
  const { phase } = asked;
  const found: Live[] = [];
  for (let before = from; found.length < limit;) {
    const { jobs } = await live(shard, {
      limit,
      ...only(asked),
      ...(before === undefined ? {} : { before }),
    });
    for (const line of jobs) if (phase === undefined || line.phase === phase) found.push({ shard, line });
    before = jobs.at(-1)?.job;
    if (jobs.length < limit || before === undefined) break;
  }
  return found;
}

const pastJobs = ({ tenant, door, phase }: JobsQuery, limit: number, place: Place, { directory }: ListPorts) =>
  directory.history.jobs({ tenant, door, phase, limit, cursor: place.history || undefined });

/** Those of history that memory has, too: they were shown before. */
async function stillLiving(rows: readonly JobRow[], asked: JobsQuery, { live }: ListPorts): Promise<Set<string>> {
  const living = new Set<string>();
  const look = async (shard: ShardId, numbers: readonly number[]): Promise<void> => {
    const lowest = Math.min(...numbers);
    for (let before = Math.max(...numbers) + 1; before > lowest;) {
      const { jobs } = await live(shard, { limit: listLimitMax, before, ...only(asked) });
      for (const { job } of jobs) living.add(formatJob(shard, job));
      if (jobs.length < listLimitMax) return;
      before = jobs.at(-1)?.job ?? lowest;
    }
  };
  for (const [shard, own] of Map.groupBy(rows, ({ shard: of }) => of))
    await look(
      shard,
      own.map(({ job }) => job),
    ).catch((error: unknown) => {
      if (!isFault(error, "unavailable")) throw error; // nothing of it was shown either
    });
  return living;
}

const listed = ({ shard, line }: Live): ListedJob => {
  const { job, ...rest } = line;
  return { jobId: formatJob(shard, job), live: true, ...rest };
};

const remembered = ({ shard, job, reason: _, ...row }: JobRow): ListedJob => ({
  jobId: formatJob(shard, job),
  live: false,
  ...row,
  tasks: undefined,
  done: undefined,
});

const writePlace = (place: Place): string => Buffer.from(JSON.stringify(place)).toString("base64url");

function readPlace(cursor: string | undefined): Place {
  if (cursor === undefined) return {};
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString("utf8")) as Place;
  } catch (cause) {
    throw new Fault("invalid", "list jobs", { why: "the cursor is not one of ours" }, cause);
  }
}

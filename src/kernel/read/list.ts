/** Lists and counts of the jobs in memory. */
import type { Job } from "#kernel/model/entities.ts";
import type { JobPhase, Tag } from "#kernel/model/model.ts";
import type { State } from "#kernel/model/state.ts";
import { hasTags } from "#kernel/model/tag-index.ts";
import { isJobOver } from "#kernel/apply/moves.ts";
import type { JobCount, JobLine, JobView, Query } from "./query.ts";
import { isVisible } from "./visible.ts";

export const listMax = 1_000;
/** How many numbers a list tries one by one. */
const numbersMax = 4_000;
/** How many jobs one count goes through. */
const countedMax = 100_000;

type ListQuery = Extract<Query, { kind: "jobs" }>;
type CountQuery = Extract<Query, { kind: "count" }>;
type Filters = Omit<ListQuery, "kind" | "limit" | "before">;

export const clamp = (value: number, max: number): number => Math.max(0, Math.min(max, Math.floor(value) || 0));

/**
 * Newest first. Tries number by number as long as jobs are close together, since most pages show the newest jobs; then
 * scans all jobs once, since an old job may be a million numbers below the others.
 */
export function listJobs(state: State, query: ListQuery): JobLine[] {
  const limit = clamp(query.limit, listMax);
  const isAsked = isAskedBy(query);
  const lines: JobLine[] = [];
  let no = Math.min(query.before ?? state.nextJob, state.nextJob) - 1;
  if (query.tags && query.tags.length > 0) return listTagged(state, { ...query, tags: query.tags, limit }, no);
  for (let looked = 0; no > 0 && lines.length < limit && looked < numbersMax; no -= 1) {
    looked += 1;
    const job = state.jobs.get(no);
    if (job && isAsked(job)) lines.push(jobLine(job));
  }
  if (no <= 0 || lines.length === limit) return lines;
  const older = [...state.jobs.values()].filter((job) => job.no <= no && isAsked(job)).sort((a, b) => b.no - a.no);
  return [...lines, ...older.slice(0, limit - lines.length).map(jobLine)];
}

const isAskedBy =
  (query: Filters) =>
  (job: Job): boolean =>
    isVisible(job, query) &&
    (query.door === undefined || query.door === job.door) &&
    (query.phase === undefined || query.phase === job.phase) &&
    (query.fromMs === undefined || job.submittedAtMs >= query.fromMs) &&
    (query.toMs === undefined || job.submittedAtMs < query.toMs) &&
    (query.tags === undefined || hasTags(job.extras?.tags, query.tags));

/** Goes through the jobs that have the rarest of the tags, instead of through all. */
function listTagged(state: State, query: ListQuery & { readonly tags: readonly Tag[] }, highest: number): JobLine[] {
  const isAsked = isAskedBy(query);
  const found = [...tagged(state, query)]
    .filter((job) => job.no <= highest && isAsked(job))
    .sort((a, b) => b.no - a.no);
  return found.slice(0, query.limit).map(jobLine);
}

function jobLine(job: Job): JobLine {
  let tasks = 0;
  let done = 0;
  for (const stage of job.stages) {
    tasks += stage.size;
    done += stage.done;
  }
  const { no, tenant, door, name, phase, priority, submittedAtMs } = job;
  const endedAtMs = job.endedAtMs || undefined;
  const line = { job: no, tenant: tenant.name, door, name, phase, priority, submittedAtMs, endedAtMs, tasks, done };
  return { ...line, ...extrasOf(job) };
}

/** The jobs that have the rarest of the tags, of the tenant or of all. */
function* tagged(state: State, { tenant, tags }: { readonly tenant?: string; readonly tags: readonly Tag[] }) {
  if (tenant !== undefined) return yield* state.tagged.having(tenant, tags);
  for (const name of state.tenants.keys()) yield* state.tagged.having(name, tags);
}

export function countJobs(state: State, query: CountQuery): JobCount {
  const isAsked = isAskedBy(query);
  const { tags = [] } = query;
  const phases = new Map<JobPhase, number>();
  let looked = 0;
  for (const job of tags.length > 0 ? tagged(state, { ...query, tags }) : state.jobs.values()) {
    if (looked >= countedMax) break;
    looked += 1;
    if (!isJobOver(job) && isAsked(job)) phases.set(job.phase, (phases.get(job.phase) ?? 0) + 1);
  }
  return { phases: [...phases].map(([phase, jobs]) => ({ phase, jobs })), capped: looked >= countedMax };
}

export function extrasOf({ extras }: Job): Pick<JobView, "tags" | "series"> {
  if (!extras) return {};
  const { tags, series } = extras;
  return { ...(tags.length > 0 && { tags }), ...(series && { series }) };
}

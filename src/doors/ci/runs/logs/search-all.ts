/**
 * Finds text in the logs of all runs of a tenant, the newest run first. One call looks at so many runs, bytes and
 * milliseconds and no more; its answer says where the next call goes on.
 */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { Tag } from "#kernel/model/model.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { LogLine } from "#doors/ci/job/log/log-line.ts";
import { door } from "#doors/ci/plan.ts";
import { findRun } from "#doors/ci/runs/look.ts";
import { type CellView, viewRun } from "#doors/ci/view.ts";
import type { LogBatch, LogPlace, LogQuery } from "./log-feed.ts";

export type SearchPorts = {
  readonly client: Pick<WorkClient, "job" | "jobs">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly feed: (query: LogQuery) => AsyncIterable<LogBatch>;
};

export type SearchLimits = { readonly runsMax: number; readonly bytesMax: number; readonly msMax: number };
const defaults: SearchLimits = { runsMax: 200, bytesMax: 64 * 1024 * 1024, msMax: 10_000 };
const textLengthMax = 2_000;

export type Match = LogLine & { readonly run: string; readonly repository: string; readonly job: string };
export type Searched = { readonly items: readonly Match[]; readonly next?: string; readonly runs: number };

export type Search = {
  readonly tenant: string;
  readonly text: string;
  readonly tags: readonly Tag[];
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly signal: AbortSignal;
};

/** Where a search is: behind so many runs, in a job of the next one, behind a line of its log. */
const Place = z.strictObject({
  after: z.string().max(2_000).optional(),
  cell: z.int().min(0).max(10_000).default(0),
  at: z.strictObject({ token: z.int().min(0), offset: z.int().min(0) }).optional(),
});
type Place = z.output<typeof Place>;

const written = (place: Place): string => Buffer.from(JSON.stringify(place)).toString("base64url");

function placeOf(cursor: string | undefined): Place {
  if (cursor === undefined) return { cell: 0 };
  try {
    return Place.parse(JSON.parse(Buffer.from(cursor, "base64url").toString("utf8")));
  } catch (cause) {
    throw new Fault("invalid", "search logs", { why: "the cursor is none of a search" }, cause);
  }
}

export async function searchRuns(ports: SearchPorts, search: Search, limits = defaults): Promise<Searched> {
  const { client, clock } = ports;
  const { tenant, tags, cursor } = search;
  const spent = new Spent(search.limit, limits, clock);
  for (let place = placeOf(cursor), runs = 0; ; runs += 1) {
    if (runs >= limits.runsMax || spent.isOver) return { items: spent.items, next: written(place), runs };
    const { after } = place;
    const page = await client.jobs({
      tenant,
      door,
      limit: 1,
      ...(tags.length > 0 && { tags }),
      ...(after !== undefined && { cursor: after }),
    });
    const run = page.jobs[0]?.jobId;
    if (run !== undefined) {
      const stopped = await searchRun(ports, { ...search, run }, place, spent);
      if (stopped) return { items: spent.items, next: written({ ...stopped, after }), runs: runs + 1 };
    }
    if (page.cursor === undefined) return { items: spent.items, runs: runs + (run === undefined ? 0 : 1) };
    spent.looked(0);
    place = { after: page.cursor, cell: 0 };
  }
}

class Spent {
  readonly items: Match[] = [];
  readonly #limit: number;
  readonly #limits: SearchLimits;
  readonly #clock: SearchPorts["clock"];
  readonly #untilMono: number;
  #hasLooked = false;
  #bytes = 0;

  constructor(limit: number, limits: SearchLimits, clock: SearchPorts["clock"]) {
    this.#limit = limit;
    this.#limits = limits;
    this.#clock = clock;
    this.#untilMono = clock.monotonicMs() + limits.msMax;
  }

  /** What was looked at: a part of a log, or a run without any. */
  looked(bytes: number): void {
    this.#hasLooked = true;
    this.#bytes += bytes;
  }

  get isFull(): boolean {
    return this.items.length >= this.#limit;
  }

  /** Never before it has got somewhere: the next call would go no further. */
  get isOver(): boolean {
    const isSpent = this.#bytes >= this.#limits.bytesMax || this.#clock.monotonicMs() >= this.#untilMono;
    return this.isFull || (this.#hasLooked && isSpent);
  }
}

type InRun = Search & { readonly run: string };

/** Where it stopped; undefined at the end of the run. */
async function searchRun(
  ports: SearchPorts,
  search: InRun,
  from: Place,
  spent: Spent,
): Promise<Omit<Place, "after"> | undefined> {
  const found = await findRun(ports.client, search.run, search.tenant).catch(forgotten);
  const cells = found ? viewRun(found.view).jobs.flatMap((job) => job.cells) : [];
  for (const [at, cell] of cells.entries()) {
    if (at < from.cell) continue;
    if (spent.isOver) return { cell: at };
    const of = { ...search, repository: found?.about.repository ?? "", cell };
    const place = await searchJob(ports, of, at === from.cell ? from.at : undefined, spent);
    if (place) return { cell: at, at: place };
  }
  return undefined;
}

async function searchJob(
  { feed }: SearchPorts,
  { run, tenant, text, cell, repository, signal }: InRun & { readonly cell: CellView; readonly repository: string },
  from: LogPlace | undefined,
  spent: Spent,
): Promise<LogPlace | undefined> {
  const wanted = text.toLowerCase();
  try {
    for await (const batch of feed({ run, tenant, task: cell.task, follow: false, from, signal })) {
      const { token = 0, lines, ends, offset, end } = batch;
      spent.looked(end - offset);
      for (const [at, line] of lines.entries()) {
        if (!line.text.toLowerCase().includes(wanted)) continue;
        spent.items.push({ ...line, run, repository, job: cell.name, text: line.text.slice(0, textLengthMax) });
        if (spent.isFull) return { token, offset: ends[at] ?? end };
      }
      if (spent.isOver) return { token, offset: end };
    }
  } catch (error) {
    forgotten(error);
  }
  return undefined;
}

/** Its time was over, before or meanwhile. */
function forgotten(error: unknown): undefined {
  if (!isRejected(error) && !isFault(error, "not-found")) throw error;
}

/** A search reads much: so many at once on a node, and of a tenant. */
export class Searches {
  readonly #running = new Map<string, number>();

  async run<T>(tenant: string, work: () => Promise<T>): Promise<T> {
    const all = [...this.#running.values()].reduce((sum, count) => sum + count, 0);
    const own = this.#running.get(tenant) ?? 0;
    if (all >= atOnceMax || own >= tenantAtOnceMax)
      throw new Fault("exhausted", "search logs", { why: "other searches run", try: "again in a moment" });
    this.#running.set(tenant, own + 1);
    try {
      return await work();
    } finally {
      const left = (this.#running.get(tenant) ?? 1) - 1;
      if (left > 0) this.#running.set(tenant, left);
      else this.#running.delete(tenant);
    }
  }
}

const atOnceMax = 8;
const tenantAtOnceMax = 2;

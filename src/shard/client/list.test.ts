import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { JobRow } from "#base/history-rows.ts";
import { formatJob } from "#base/ids.ts";
import { newestFirst } from "#journal/history/cursor.ts";
import { memoryHistory } from "#journal/memory/memory-history.ts";
import type { JobLine } from "#kernel/read/query.ts";
import { jobRef } from "./ask.ts";
import { listJobs } from "./list.ts";

const shards = 3;

/** A shard's job numbers and times grow together, as in a real shard; equal times happen. */
const submissions = fc.array(
  fc.record({ shard: fc.nat({ max: shards - 1 }), laterMs: fc.nat({ max: 2 }), gap: fc.integer({ min: 1, max: 3 }) }),
  { maxLength: 40 },
);

function cluster() {
  const memory = Array.from({ length: shards }, () => new Map<number, JobLine>());
  const history = memoryHistory(() => 1);
  const next = { atMs: 1_000, job: Array.from({ length: shards }, () => 1) };
  const of = (shard: number): Map<number, JobLine> => memory[shard] ?? new Map();
  return {
    ports: {
      directory: { history, cluster: async () => ({ shards }) } as never,
      live: async (
        shard: number,
        { limit, before = Number.POSITIVE_INFINITY }: { limit: number; before?: number },
      ) => ({
        jobs: [...of(shard).values()]
          .filter(({ job }) => job < before)
          .toSorted((a, b) => b.job - a.job)
          .slice(0, limit),
      }),
    },
    submit: ({ shard, laterMs, gap }: { shard: number; laterMs: number; gap: number }): string => {
      next.atMs += laterMs;
      const job = (next.job[shard] ?? 0) + gap;
      next.job[shard] = job;
      const about = {
        tenant: "t",
        door: "d",
        name: "",
        phase: "RUNNING",
        priority: 0,
        submittedAtMs: next.atMs,
      } as const;
      of(shard).set(job, { job, ...about, endedAtMs: undefined, tasks: 1, done: 0 });
      return formatJob(shard, job);
    },
    /** Ends every nth job: it is then in history, and in memory too while it `stays`. */
    end: async (nth: number, stays: boolean): Promise<void> => {
      for (const [shard, jobs] of memory.entries())
        for (const { tasks: _, done: __, tags: ___, series: ____, ...line } of [...jobs.values()].filter(
          (_line, i) => i % nth === 0,
        )) {
          const untagged = { tags: [], series: "", number: 0 };
          const row: JobRow = { shard, ...line, ...untagged, reason: "", endedAtMs: 2_000, seenAtMs: 2_000 };
          const rows = { jobs: [row], stages: [], tasks: [], attempts: [], steps: [] };
          await history.record(shard, { epoch: 1, throughSeq: 1 }, rows);
          if (!stays) jobs.delete(line.job);
        }
    },
  };
}

test("every job is listed once, newest first, though jobs come, end and leave memory between the pages", async () => {
  const ends = fc.record({ nth: fc.integer({ min: 1, max: 4 }), stays: fc.boolean(), comes: submissions });
  await fc.assert(
    fc.asyncProperty(
      submissions,
      fc.integer({ min: 1, max: 7 }),
      fc.array(ends, { minLength: 1, maxLength: 9 }),
      async (before, limit, between) => {
        const { ports, submit, end } = cluster();
        const jobs = before.map(submit);
        const seen: (readonly [string, number])[] = [];
        let cursor: string | undefined;
        for (let page = 0; page === 0 || cursor !== undefined; page += 1) {
          const { nth, stays, comes } = between[page % between.length] as (typeof between)[number];
          await end(nth, stays);
          if (page > 0) comes.slice(0, 3).map(submit);
          const listed = await listJobs({ limit, ...(cursor === undefined ? {} : { cursor }) }, ports);
          seen.push(...listed.jobs.map(({ jobId, submittedAtMs }) => [jobId, submittedAtMs] as const));
          ({ cursor } = listed);
        }
        const ids = seen.map(([jobId]) => jobId);
        deepEqual(ids.filter((jobId) => jobs.includes(jobId)).toSorted(), jobs.toSorted());
        deepEqual(ids.length, new Set(ids).size);
        const places = seen.map(([jobId, submittedAtMs]) => ({ ...jobRef(jobId), submittedAtMs }));
        deepEqual(places, places.toSorted(newestFirst));
      },
    ),
  );
});

import { deepEqual, equal } from "node:assert/strict";
import { faults, fill, own, scene, type MakeStore } from "./support.ts";
import type { HistoryRows, JobRow } from "#base/history-rows.ts";
import type { JobFilter } from "#journal/journal.ts";

export const jobRow = (shard: number, job: number, part: Partial<JobRow> = {}): JobRow => ({
  shard,
  job,
  tenant: "acme",
  door: "ci",
  name: `job ${job}`,
  phase: "COMPLETED",
  reason: "",
  priority: 5,
  submittedAtMs: 1_000 + job,
  endedAtMs: 2_000 + job,
  seenAtMs: 2_000 + job,
  tags: [],
  series: "",
  number: 0,
  ...part,
});

/** A job of one stage with two tasks, one attempt each and two steps per attempt. */
export function jobRows(shard: number, job: number, part: Partial<JobRow> = {}): HistoryRows {
  const tasks = [job * 10, job * 10 + 1];
  return {
    jobs: [jobRow(shard, job, part)],
    stages: [
      {
        shard,
        job,
        stage: 1,
        name: "build",
        phase: "COMPLETED",
        generation: 1,
        tasks: 2,
        reason: "",
        startedAtMs: 1,
        endedAtMs: 2,
      },
    ],
    tasks: tasks.map((task) => ({
      shard,
      task,
      job,
      stage: 1,
      key: `cell "${task}", {a\\b}`,
      phase: "SUCCEEDED",
      generation: 1,
      attempts: 1,
      result: '{"ok":true, "said":"grüß\n\\"dich"}',
      digests: task % 2 ? [] : [`${"a".repeat(64)}/1`, `${"b".repeat(64)}/2`],
      reason: "",
      queuedAtMs: 1.5,
      endedAtMs: 9,
    })),
    attempts: tasks.map((task) => ({
      shard,
      task,
      token: 3,
      job,
      executor: "worker-1",
      outcome: "committed",
      reason: "",
      grantedAtMs: 1,
      startedAtMs: 2,
      endedAtMs: 3,
    })),
    steps: tasks.flatMap((task) =>
      [1, 2].map((step) => ({ shard, task, token: 3, step, name: `step ${step}`, status: "ok", atMs: step })),
    ),
  };
}

const merged = (...all: HistoryRows[]): HistoryRows => ({
  jobs: all.flatMap(({ jobs }) => jobs),
  stages: all.flatMap(({ stages }) => stages),
  tasks: all.flatMap(({ tasks }) => tasks),
  attempts: all.flatMap(({ attempts }) => attempts),
  steps: all.flatMap(({ steps }) => steps),
});

const asHistory = ({ jobs: [job], ...rest }: HistoryRows): unknown => ({ job, ...rest });

export function exerciseHistory(makeStore: MakeStore): void {
  scene(
    makeStore,
    "history rows and cursor move together; writing them again changes nothing",
    async ({ journal, node }) => {
      const { history } = journal;
      const epoch = await own(journal, 0);
      equal(await history.cursor(0), 0);
      equal(await history.job(0, 1), undefined);
      const rows = merged(jobRows(0, 1), jobRows(0, 2));
      await history.record(0, { epoch, throughSeq: 4 }, rows);
      await history.record(0, { epoch, throughSeq: 4 }, rows);
      const other = await node();
      equal(await other.history.cursor(0), 4);
      equal(await other.history.cursor(1), 0);
      deepEqual(await other.history.job(0, 1), asHistory(jobRows(0, 1)));
      deepEqual(await other.history.job(0, 2), asHistory(jobRows(0, 2)));
      equal(await other.history.job(1, 1), undefined);
      equal((await history.jobs({ limit: 10 })).jobs.length, 2);
    },
  );

  scene(
    makeStore,
    "a newer row replaces the older one, and an older batch does not bring it back",
    async ({ journal }) => {
      const { history } = journal;
      const epoch = await own(journal, 0);
      const old = jobRows(0, 1, { phase: "FAILED", name: "first" });
      const now = jobRows(0, 1, { phase: "COMPLETED", name: "then" });
      await history.record(0, { epoch, throughSeq: 4 }, merged(old, now));
      deepEqual(await history.job(0, 1), asHistory(now));
      const newest = jobRows(0, 1, { phase: "CANCELLED" });
      await history.record(0, { epoch, throughSeq: 6 }, newest);
      await history.record(0, { epoch, throughSeq: 4 }, old);
      equal(await history.cursor(0), 6);
      deepEqual(await history.job(0, 1), asHistory(newest));
    },
  );

  scene(makeStore, "K8 history is fenced like the log", async ({ journal, node }) => {
    const epoch = await own(journal, 0);
    const next = await own(await node(), 0, "ada");
    await faults(journal.history.record(0, { epoch, throughSeq: 1 }, jobRows(0, 1)), "stale");
    equal(await journal.history.job(0, 1), undefined);
    equal(await journal.history.cursor(0), 0);
    await journal.history.record(0, { epoch: next, throughSeq: 1 }, jobRows(0, 1));
    equal(await journal.history.cursor(0), 1);
  });

  scene(
    makeStore,
    "after a reset history is written again from the first batch, over the existing rows",
    async ({ journal, node }) => {
      const { history } = journal;
      const epoch = await own(journal, 0);
      await fill(journal, { shard: 0, epoch, count: 4 });
      await history.reset(0, epoch);
      const rows = jobRows(0, 1, { name: "as it was" });
      await history.record(0, { epoch, throughSeq: 4 }, merged(rows, jobRows(0, 2)));
      await history.record(0, { epoch, throughSeq: 1 }, jobRows(0, 1, { name: "ignored" }));
      await history.reset(0, epoch);
      const other = await node();
      equal(await other.history.cursor(0), 0);
      deepEqual(await other.history.job(0, 1), asHistory(rows), "rows stay");
      await faults(journal.trim(0, epoch, 1), "invalid");
      const anew = jobRows(0, 1, { name: "anew" });
      await history.record(0, { epoch, throughSeq: 1 }, anew);
      equal(await other.history.cursor(0), 1);
      deepEqual(await other.history.job(0, 1), asHistory(anew));
      deepEqual(await other.history.job(0, 2), asHistory(jobRows(0, 2)));

      const next = await own(other, 0);
      await faults(history.reset(0, epoch), "stale");
      equal(await history.cursor(0), 1);
      await other.history.reset(0, next);
      equal(await history.cursor(0), 0);
      await history.reset(1, await own(journal, 1));
      equal(await history.cursor(1), 0);
    },
  );

  scene(makeStore, "text that databases cannot store exactly is stored as closely as possible", async ({ journal }) => {
    const epoch = await own(journal, 0);
    await journal.history.record(
      0,
      { epoch, throughSeq: 1 },
      jobRows(0, 1, { name: "nul \u0000 here", reason: "\ud800 half" }),
    );
    const name = (await journal.history.job(0, 1))?.job.name ?? "";
    equal(name.replaceAll("\u0000", "\ufffd"), "nul \ufffd here");
  });

  scene(
    makeStore,
    "jobs are listed newest first, page by page, across shards, whenever they ended",
    async ({ journal }) => {
      const { history } = journal;
      const epochs = [await own(journal, 0), await own(journal, 1)];
      for (const [shard, epoch] of epochs.entries()) {
        const jobs = Array.from({ length: 12 }, (_, i) =>
          jobRow(shard, i + 1, {
            tenant: i % 3 ? "acme" : "zeta",
            submittedAtMs: 5_000 + (i >> 1),
            endedAtMs: 9_000 - i,
          }),
        );
        await history.record(shard, { epoch, throughSeq: 1 }, { ...merged(), jobs });
      }
      const everything: JobRow[] = [];
      for (let cursor: string | undefined, pages = 0; pages === 0 || cursor !== undefined; pages += 1) {
        const page = await history.jobs({ limit: 7, cursor });
        everything.push(...page.jobs);
        cursor = page.cursor;
        equal(pages < 4, true);
      }
      const order = everything.map(({ submittedAtMs, shard, job }) => [submittedAtMs, shard, job]);
      equal(new Set(order.map(String)).size, 24);
      deepEqual(
        order,
        order.toSorted((a, b) => (b[0] ?? 0) - (a[0] ?? 0) || (b[1] ?? 0) - (a[1] ?? 0) || (b[2] ?? 0) - (a[2] ?? 0)),
      );
      const zeta = await history.jobs({ tenant: "zeta", limit: 5 });
      equal(zeta.jobs.length, 5);
      const rest = await history.jobs({ tenant: "zeta", limit: 5, cursor: zeta.cursor });
      deepEqual([rest.jobs.length, rest.cursor], [3, undefined]);
      equal((await history.jobs({ door: "build", limit: 5 })).jobs.length, 0);
      equal((await history.jobs({ phase: "COMPLETED", tenant: "acme", door: "ci", limit: 100 })).jobs.length, 16);
      for (const cursor of ["", "nonsense", "aDIuMS4xLjE=", `${zeta.cursor}!`])
        await faults(history.jobs({ limit: 5, cursor }), "invalid");
      for (const limit of [0, -1, 1.5, 5000]) await faults(history.jobs({ limit }), "invalid");
    },
  );

  scene(makeStore, "jobs are listed and counted by tags, phase and time, of one tenant", async ({ journal }) => {
    const { history } = journal;
    const epochs = [await own(journal, 0), await own(journal, 1)];
    for (const [shard, epoch] of epochs.entries()) {
      const jobs = Array.from({ length: 12 }, (_, i) =>
        jobRow(shard, i + 1, {
          tenant: i < 10 ? "acme" : "zeta",
          phase: i % 4 === 3 ? "FAILED" : "SUCCEEDED",
          submittedAtMs: 5_000 + i,
          endedAtMs: i === 9 ? 0 : 9_000 + i,
          tags: i === 0 ? [] : [`branch=${i % 2 ? "main" : "a=b, \"c'"}`, `repo=r${i % 3}`],
          ...(i > 0 && { series: "ci", number: i }),
        }),
      );
      await history.record(shard, { epoch, throughSeq: 1 }, { ...merged(), jobs });
      await history.record(shard, { epoch, throughSeq: 1 }, { ...merged(), jobs });
    }
    const main = { name: "branch", value: "main" };
    const listed = async (filter: JobFilter, limit = 100): Promise<string[]> =>
      (await history.jobs({ ...filter, limit })).jobs.map(({ shard, job }) => `${shard}.${job}`);
    deepEqual(await listed({ tenant: "acme", tags: [main] }, 5), ["1.10", "0.10", "1.8", "0.8", "1.6"]);
    const first = await history.jobs({ tenant: "acme", tags: [main], limit: 5 });
    const rest = await history.jobs({ tenant: "acme", tags: [main], limit: 5, cursor: first.cursor });
    deepEqual([rest.jobs.map(({ job }) => job), rest.cursor], [[6, 4, 4, 2, 2], undefined]);
    deepEqual(rest.jobs[0]?.tags, ["branch=main", "repo=r2"]);
    deepEqual([rest.jobs[0]?.series, rest.jobs[0]?.number], ["ci", 5]);
    deepEqual(await listed({ tenant: "acme", tags: [main, { name: "repo", value: "r1" }] }), [
      "1.8",
      "0.8",
      "1.2",
      "0.2",
    ]);
    deepEqual(await listed({ tenant: "acme", tags: [main, { name: "repo", value: "main" }] }), []);
    deepEqual(await listed({ tags: [main], fromMs: 5_009 }), ["1.12", "0.12", "1.10", "0.10"]);
    deepEqual(await listed({ tenant: "zeta", tags: [main] }), ["1.12", "0.12"]);
    const odd = [{ name: "branch", value: "a=b, \"c'" }];
    deepEqual(await listed({ tenant: "acme", tags: odd, fromMs: 5_004, toMs: 5_008 }), ["1.7", "0.7", "1.5", "0.5"]);
    deepEqual(await listed({ tenant: "acme", tags: [main], phase: "FAILED", door: "ci", toMs: 5_004 }), ["1.4", "0.4"]);
    const counted = async (filter: JobFilter): Promise<unknown> => {
      const { phases, capped } = await history.count(filter);
      return [Object.fromEntries(phases.map(({ phase, jobs }) => [phase, jobs])), capped];
    };
    deepEqual(await counted({ tenant: "acme" }), [{ SUCCEEDED: 14, FAILED: 4 }, false], "without what has not ended");
    deepEqual(await counted({ tenant: "acme", tags: [main] }), [{ SUCCEEDED: 4, FAILED: 4 }, false]);
    deepEqual(await counted({ tenant: "acme", tags: [main], phase: "FAILED", fromMs: 5_004 }), [{ FAILED: 2 }, false]);
    deepEqual(await counted({ tenant: "nobody" }), [{}, false]);
    equal(await history.trim(0, 9_008, 100), 8);
    deepEqual(await listed({ tenant: "acme", tags: [main] }), ["1.10", "0.10", "1.8", "1.6", "1.4", "1.2"]);
    equal(await history.trim(0, 1e9, 100), 3, "what has not ended stays");
    deepEqual(await listed({ tags: [main] }), ["1.12", "1.10", "0.10", "1.8", "1.6", "1.4", "1.2"]);
  });

  scene(
    makeStore,
    "a large job written in portions is read and trimmed as one job, with the newest version of each row",
    async ({ journal, node }) => {
      const { history } = journal;
      const epoch = await own(journal, 0);
      const small = jobRows(0, 1);
      const [task] = small.tasks;
      const [attempt] = small.attempts;
      if (!task || !attempt) throw new Error("a job has tasks");
      const tasks = Array.from({ length: 700 }, (_, no) => ({ ...task, task: no, key: `t${no}`, endedAtMs: 10 + no }));
      const attempts = tasks.map(({ task: no }) => ({ ...attempt, task: no }));
      const steps = [0, 350, 699].map((no) => ({
        shard: 0,
        task: no,
        token: 3,
        step: 1,
        name: "s",
        status: "ok",
        atMs: 1,
      }));
      const rows = (from: number, to: number): HistoryRows => ({
        ...merged(),
        tasks: tasks.slice(from, to),
        attempts: attempts.slice(from, to),
      });
      await history.record(0, { epoch, throughSeq: 1 }, rows(0, 3));
      await history.record(0, { epoch, throughSeq: 2 }, { ...rows(3, 400), steps });
      // Run again: alone, and together with many others.
      const anew = (no: number): HistoryRows => ({
        ...merged(),
        tasks: tasks.slice(no, no + 1).map((row) => ({ ...row, generation: 2, result: "anew" })),
      });
      await history.record(0, { epoch, throughSeq: 3 }, anew(200));
      await history.record(0, { epoch, throughSeq: 4 }, merged(rows(400, 699), anew(1)));
      await history.record(
        0,
        { epoch, throughSeq: 5 },
        merged(rows(699, 700), { ...small, tasks: [], attempts: [], steps: [] }),
      );
      const found = await (await node()).history.job(0, 1);
      deepEqual(
        found?.tasks,
        tasks.map((row) => (row.task === 200 || row.task === 1 ? { ...row, generation: 2, result: "anew" } : row)),
      );
      deepEqual([found?.attempts, found?.stages, found?.steps], [attempts, small.stages, steps]);
      equal(await history.trim(0, 1e9, 10), 1);
      equal(await history.job(0, 1), undefined);
      // A new job under the same number finds nothing of the old one.
      await history.record(
        0,
        { epoch, throughSeq: 6 },
        merged({ ...jobRows(0, 1), steps: [] }, { ...rows(350, 351), attempts: [] }),
      );
      deepEqual((await history.job(0, 1))?.steps, []);
    },
  );

  scene(makeStore, "old jobs are deleted with all their rows, oldest first", async ({ journal }) => {
    const { history } = journal;
    const epoch = await own(journal, 0);
    const times = (job: number) => ({ submittedAtMs: job * 100 - 50, endedAtMs: job * 100 });
    for (const job of [1, 2, 3, 4]) await history.record(0, { epoch, throughSeq: job }, jobRows(0, job, times(job)));
    await history.record(0, { epoch, throughSeq: 4 }, jobRows(0, 5, { submittedAtMs: 10, endedAtMs: 400 }));
    equal(await history.trim(0, 350, 2), 2);
    equal(await history.job(0, 1), undefined);
    deepEqual(await history.job(0, 3), asHistory(jobRows(0, 3, times(3))));
    equal(await history.trim(0, 350, 2), 1);
    equal(await history.trim(0, 350, 2), 0);
    equal(await history.trim(0, 400, 2), 0, "what ended at that instant stays");
    deepEqual(
      (await history.jobs({ limit: 9 })).jobs.map(({ job }) => job),
      [4, 5],
    );
    equal(await history.cursor(0), 4);
  });
}

/** The runners and planners of this door, one call at a time, over a store in memory that loses what a test says. */
import { ok } from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import type { Store } from "#blobs/store.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { TaskPlan } from "#kernel/model/model.ts";
import { listedIn, setsOf } from "#kernel/model/task-set.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import { realClock } from "#testing/real-clock.ts";
import type { RunContext, RunOutcome } from "#worker/runner.ts";
import { ScratchDir } from "#worker/scratch.ts";
import { LinkCache } from "#worker/stage/link-cache.ts";
import { grantedTask } from "#worker/testing/granted.ts";
import { uncounted } from "#doors/batch/metrics.ts";
import { kinds, type BatchJob } from "#doors/batch/plan.ts";
import { batchPlanners, batchRunners, type BatchPorts } from "#doors/batch/run.ts";
import { Engines } from "#doors/batch/run/engines.ts";
import { Memory } from "#doors/batch/run/memory.ts";
import { openOracle } from "./oracle.ts";

export type Done = Extract<RunOutcome, { kind: "done" }>;
export type Results = PlanInputs["results"][number][];

const MiB = 1024 * 1024;

export class RunnerLab implements AsyncDisposable {
  readonly folder: string;
  readonly engines = new Engines({ clock: realClock, enginesMax: 1 });
  readonly files: LinkCache;
  readonly invalidated: string[] = [];
  lost: ReadonlySet<string> = new Set();
  readonly #memory = createMemoryStore({ clock: realClock, sizeBytesMax: 64 * MiB });

  private constructor(folder: string, files: LinkCache) {
    this.folder = folder;
    this.files = files;
  }

  /** With a table t.parquet: a from 0 to 9,999, b is a modulo 7. */
  static async open(): Promise<RunnerLab> {
    const folder = await mkdtemp(join(tmpdir(), "millrace-runners-"));
    const oracle = await openOracle();
    await oracle.run(
      `copy (select range as a, range % 7 as b from range(10000)) to '${folder}/t.parquet' (row_group_size 2048)`,
    );
    return new RunnerLab(folder, await LinkCache.open({ folder: join(folder, "packs"), bytesMax: 64 * MiB }));
  }

  get job(): BatchJob {
    return {
      sql: "select b, count(*) as n from 't.parquet' group by b",
      folder: this.folder,
      settings: { splitBytes: 10_000, broadcastBytes: 1, partitions: 2, reduceBytes: 1 },
      isExplained: false,
    };
  }

  get #store(): Pick<Store, "forTenant"> {
    return {
      forTenant: (tenant) => {
        const { blobs, uploads } = this.#memory.forTenant(tenant);
        const missing = async (digests: readonly string[]): Promise<readonly string[]> => [
          ...(await blobs.missing(digests)),
          ...digests.filter((digest) => this.lost.has(digest)),
        ];
        return { uploads, blobs: { ...blobs, missing, read: blobs.read.bind(blobs), write: blobs.write.bind(blobs) } };
      },
    };
  }

  get ports(): BatchPorts {
    const store = this.#store;
    return {
      node: "lab",
      blobs: store.forTenant("all").blobs,
      store,
      engines: this.engines,
      files: this.files,
      scratch: (name: string) => ScratchDir.create(join(this.folder, "tasks"), name),
      memoryBytes: 256 * MiB,
      memory: new Memory(1024 * MiB),
      spillBytes: 1024 * MiB,
      warn: () => {},
      grants: [],
      counts: uncounted,
      nowMs: () => performance.now(),
      invalidate: async (taskId: string, generation: number) => void this.invalidated.push(`${taskId} ${generation}`),
    };
  }

  #context(task: Partial<Granted>): RunContext {
    return {
      task: grantedTask({ door: "batch", ...task }),
      signal: new AbortController().signal,
      blobs: this.#memory.forTenant("t").blobs,
      clock: realClock,
      report: () => {},
    };
  }

  async run(
    kind: string,
    spec: string,
    task: Partial<Granted> = {},
    more: Partial<BatchPorts> = {},
  ): Promise<RunOutcome> {
    const runner = batchRunners({ ...this.ports, ...more })[kind];
    ok(runner);
    return await runner(this.#context({ kind, spec, ...task }));
  }

  /** The tasks of a wave, or what came of it instead. */
  async wave(number: number, results: Results, job = this.job): Promise<readonly TaskPlan[] | string> {
    const planner = batchPlanners(this.ports)[kinds.wave];
    ok(planner);
    const spec = JSON.stringify(job);
    const inputs = { spec, stage: "", generation: 1, needs: [], signals: [], results, next: undefined };
    const plan = await planner(inputs, this.#context({ kind: kinds.wave, taskId: "t0-9", stage: number }));
    return plan.kind === "tasks" ? setsOf(plan).flatMap((set) => listedIn(set)) : plan.kind;
  }

  async planned(job = this.job): Promise<Results[number]> {
    const planned = await this.run(kinds.plan, JSON.stringify(job));
    ok(planned.kind === "done", JSON.stringify(planned));
    return asResult(planStage, "plan", planned);
  }

  /** Runs all tasks of a wave, after which come these results. */
  async waved(number: number, results: Results, job = this.job): Promise<Results> {
    const tasks = await this.wave(number, results, job);
    ok(typeof tasks !== "string", "the query is answered");
    const all = [...results];
    for (const [i, { key, spec }] of tasks.entries()) {
      const done = await this.run(kinds.part, spec, { taskId: `t0-${10 * number + i}` });
      ok(done.kind === "done", JSON.stringify(done));
      all.push(asResult(number, key, done));
    }
    return all;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engines[Symbol.asyncDispose]();
    await rm(this.folder, { recursive: true, force: true });
  }
}

const planStage = 0;

export const asResult = (stage: number, key: string, { payload, digests = [] }: Done): Results[number] => ({
  stage,
  key,
  generation: 1,
  phase: "SUCCEEDED",
  result: { payload, digests },
});

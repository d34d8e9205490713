/** Pure: a query becomes a job. What its stages are is found out on the way, from what those before have written. */
import { createHash } from "node:crypto";
import { Fault } from "#base/fault.ts";
import type { PlanSpec, StageSpec, TaskTemplate } from "#kernel/model/model.ts";
import type { Order } from "#shard/client/client.ts";
import { engineName } from "./documents.ts";
import type { MapFunction } from "./plan/map-function.ts";
import type { CutSettings } from "./plan/settings.ts";

export const door = "batch";
/** A worker that runs this door's tasks and plans its stages offers these. */
export const taskLabel = "door=batch";
export const planLabel = "plan=batch/1";
export const engineLabel = `engine=${engineName}`;

export const kinds = { plan: "batch.plan", wave: "batch.wave", part: "batch.part", commit: "batch.commit" } as const;

/** What the job itself remembers. */
export type BatchJob = {
  readonly sql: string;
  /** Where names of files begin that are not absolute. */
  readonly folder: string;
  readonly settings: CutSettings;
  /** Reads and writes what is granted to its tenant, and nothing else. Left out: whatever the node can. */
  readonly isGranted?: boolean;
  /** Planned only. */
  readonly isExplained: boolean;
  /** Where the result is written to, besides. */
  readonly output?: OutputFolder;
  /** Nothing is reused. */
  readonly fresh?: boolean;
  /** Functions over batches of rows. */
  readonly maps?: readonly MapRequest[];
};

/** A function and the query whose rows it gets; `name` is the table of what it returns. */
export type MapRequest = { readonly name: string; readonly sql: string; readonly function: MapFunction };

export type OutputFolder = { readonly folder: string; readonly partitionBy: readonly string[] };

export type BatchWishes = {
  readonly tenant: string;
  readonly priority?: number;
  readonly key?: string;
  readonly unique: string;
};

/** Stages that run at the same time are one wave; a query with more waves than this behind each other is refused. */
export const wavesMax = 48;
export const planStage = 0;

const hour = 3_600_000;
const deadlineMs = 24 * hour;
const specLengthMax = 60_000;

export function planSubmit(job: BatchJob, { tenant, priority = 0, key, unique }: BatchWishes): Order {
  const spec = JSON.stringify(job);
  if (spec.length > specLengthMax)
    throw new Fault("invalid", "submit query", {
      length: spec.length,
      lengthMax: specLengthMax,
      why: "it is too long",
    });
  const waves: StageSpec[] = Array.from({ length: job.isExplained ? 0 : wavesMax }, (_, i) => ({
    name: `wave ${i + 1}`,
    // All that ran before: what a stage wrote may be read by any wave behind it.
    needs: Array.from({ length: i + 1 }, (__, before) => before),
    after: "success",
    failFast: true,
    mayFail: false,
    parallelMax: 0,
    plan: wavePlan,
  }));
  const first: StageSpec = {
    name: "plan",
    needs: [],
    after: "success",
    failFast: true,
    mayFail: false,
    parallelMax: 0,
    tasks: { template: template(kinds.plan), tasks: [{ key: "plan", spec }] },
  };
  return {
    shardKey: `${tenant}/${key === undefined ? unique : `key ${key}`}`,
    tenant,
    door,
    name: nameOf(job.sql),
    payloadHash: createHash("sha256").update(spec).digest("hex"),
    priority,
    spec,
    deadlineMs,
    stages: [first, ...waves],
    ...(key === undefined ? {} : { requestKey: key }),
  };
}

const wavePlan: PlanSpec = {
  kind: kinds.wave,
  requires: [planLabel],
  leaseMs: 10_000,
  attemptsMax: 20,
  deadlineMs,
};

export const template = (kind: string): TaskTemplate => ({
  kind,
  requires: [taskLabel, engineLabel].toSorted(),
  leaseMs: 10_000,
  attemptsMax: 5,
  retryOn: "infrastructure",
  backoffMs: 200,
  backoffMsMax: 30_000,
  queueMs: deadlineMs,
  attemptMs: 6 * hour,
  effects: "pure",
  speculate: false,
  graceMs: 60_000,
});

/** Tasks of a stage are alike: one that takes far longer than most gets a second attempt elsewhere. */
export const partTemplate: TaskTemplate = {
  ...template(kinds.part),
  speculate: true,
  speculation: { percentile: 75, factorPercent: 200, slots: 2 },
  lossesMax: 20,
};

/** What it does is seen outside: never twice at the same time, and not after its claim. */
export const commitTemplate: TaskTemplate = { ...template(kinds.commit), effects: "outside", graceMs: 0 };

/** One line, without what a terminal would take for more than text. */
export const nameOf = (sql: string): string =>
  sql
    .replace(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, 120) || "query";

/** Undefined for what this door has not written. */
export function readJob(text: string): BatchJob | undefined {
  try {
    const job = JSON.parse(text) as Partial<BatchJob>;
    return typeof job.sql === "string" && typeof job.folder === "string" && job.settings
      ? (job as BatchJob)
      : undefined;
  } catch {
    return undefined;
  }
}

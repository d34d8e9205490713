/** Pure: a job file becomes a submission, and a gate's inputs become a plan. */
import { createHash } from "node:crypto";
import { Fault } from "#base/fault.ts";
import type { Plan, PlanSpec, StageSpec, TaskSet, TaskTemplate } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { Order } from "#shard/client/client.ts";
import { nameLengthMax, type ShellJob, type ShellStage, type signalWays } from "./request.ts";

export const door = "shell";
/** A worker that runs this door's tasks and plans its stages offers these. */
export const taskLabel = "door=shell";
export const planLabel = "plan=shell/1";

/** What is said beside the job file. */
export type Wishes = {
  readonly tenant: string;
  readonly priority?: number | undefined;
  readonly key?: string | undefined;
  readonly merge?: string | undefined;
  readonly tags?: Readonly<Record<string, string>> | undefined;
  readonly series?: string | undefined;
  /** Chosen by the caller when nothing ties the job to others; spreads jobs over shards. */
  readonly unique: string;
};

/** How a running command gets the signals that it takes, by their names: a line of a file, and one of the system's. */
export type SignalWays = Readonly<Record<string, (typeof signalWays)[number]>>;

/** What one task does, as its runner reads it. */
export type TaskSpec =
  | {
      readonly do: "command";
      readonly run: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly signals?: SignalWays;
    }
  | { readonly do: "sleep"; readonly ms: number }
  | { readonly do: "fail"; readonly reason: string; readonly times: number };

export const kinds = {
  command: "shell.command",
  sleep: "shell.sleep",
  fail: "shell.fail",
  gate: "shell.gate",
} as const;

export function planSubmit(job: ShellJob, wishes: Wishes): Order {
  const { key, merge, tenant, tags, series, priority = 0 } = wishes;
  const spec = JSON.stringify(job);
  return {
    shardKey: shardKeyOf(job, wishes),
    tenant,
    door,
    name: job.name,
    payloadHash: createHash("sha256").update(spec).digest("hex"),
    priority,
    spec,
    deadlineMs: job.timeout,
    stages: job.stages.map((stage) => planStage(stage, job)),
    ...(key === undefined ? {} : { requestKey: key }),
    ...(merge === undefined ? {} : { mergeKey: merge }),
    ...(job.lock && { lock: job.lock }),
    ...(tags && { tags: Object.entries(tags).map(([name, value]) => ({ name, value })) }),
    ...(series !== undefined && { series }),
    tracked: true,
  };
}

/** Whatever jobs share (a lock, a merge key, a request key, a series) is kept in one shard, and is found there only. */
function shardKeyOf(job: ShellJob, { tenant, key, merge, series, unique }: Wishes): string {
  const locks = [...new Set([job.lock?.name, ...job.stages.map(({ lock }) => lock?.name)])].filter(
    (name) => name !== undefined,
  );
  const ties = [
    ...(key === undefined ? [] : [`key ${key}`]),
    ...(merge === undefined ? [] : [`merge ${merge}`]),
    ...locks.map((name) => `lock ${name}`),
    ...(series === undefined ? [] : [`series ${series}`]),
  ];
  if (job.group !== undefined) return `${tenant}/group ${job.group}`;
  if (ties.length > 1)
    throw new Fault("invalid", "submit job", {
      ties: ties.join(", "),
      why: "a job with several of key, merge, lock and series needs a group, so that all are looked up in one place",
    });
  return `${tenant}/${ties[0] ?? unique}`;
}

function planStage(stage: ShellStage, job: ShellJob): StageSpec {
  const needs = stage.needs.map((name) => {
    const index = job.stages.findIndex((other) => other.name === name);
    if (index < 0)
      throw new Fault("invalid", "plan stage", { stage: stage.name, needs: name, why: "there is no such stage" });
    return index;
  });
  const { name, after, failFast, mayFail, parallelMax, lock } = stage;
  const shared = { name, needs, after, failFast, mayFail, parallelMax, ...(lock && { lock }) };
  return stage.gate ? { ...shared, plan: gatePlan(stage.gate) } : { ...shared, tasks: taskSet(stage) };
}

const gatePlan = ({ timeout }: NonNullable<ShellStage["gate"]>): PlanSpec => ({
  kind: kinds.gate,
  requires: [planLabel],
  leaseMs: 10_000,
  attemptsMax: 20,
  deadlineMs: timeout,
});

function taskSet(stage: ShellStage): TaskSet {
  const task = taskSpec(stage);
  const spec = JSON.stringify(task);
  const template = templateOf(stage, task);
  if (stage.array !== undefined) return { template, array: { count: stage.array, first: 1, spec } };
  return { template, tasks: Array.from({ length: stage.count }, (_, i) => ({ key: String(i + 1), spec })) };
}

const templateOf = (stage: ShellStage, task: TaskSpec): TaskTemplate => ({
  kind: kinds[task.do],
  requires: [...new Set([taskLabel, ...stage.requires])].toSorted(),
  leaseMs: 10_000,
  attemptsMax: stage.fail ? Math.max(stage.attempts, stage.fail.times + 1) : stage.attempts,
  retryOn: stage.fail ? "any" : stage.retry,
  backoffMs: stage.backoff,
  backoffMsMax: Math.max(stage.backoff, 60_000),
  queueMs: 7 * 24 * 3_600_000,
  attemptMs: stage.timeout,
  effects: stage.effects,
  speculate: false,
  graceMs: stage.effects === "outside" ? 0 : 60_000,
  ...lossesOf(stage),
  ...(stage.stop !== undefined && { stopMs: stage.stop }),
});

/** A lost machine does not use up the attempts of work that may be repeated. */
function lossesOf({ losses, effects }: ShellStage): Pick<TaskTemplate, "lossesMax"> {
  const lossesMax = losses ?? (effects === "pure" ? 10 : 0);
  return lossesMax === 0 ? {} : { lossesMax };
}

function taskSpec({ run, sleep, fail, env, signals }: ShellStage): TaskSpec {
  if (run !== undefined)
    return {
      do: "command",
      run: typeof run === "string" ? ["/bin/sh", "-c", run] : run,
      env,
      ...(signals && { signals }),
    };
  if (fail) return { do: "fail", ...fail };
  return { do: "sleep", ms: sleep ?? 0 };
}

/** What a gate says to the signals so far: the first of "approve" and "reject" counts. */
export function planGate({ spec, stage: name, signals }: PlanInputs): Plan {
  const stage = (JSON.parse(spec) as ShellJob).stages.find((each) => each.name === name);
  if (!stage) return { kind: "fail", reason: `the job has no stage ${name}` };
  const decision = signals.find((signal) => signal.name === "approve" || signal.name === "reject");
  if (!decision) return { kind: "wait", forMs: 3_600_000, signals: ["approve", "reject"] };
  if (decision.name === "reject") return { kind: "fail", reason: decision.payload || "rejected" };
  return { kind: "tasks", set: taskSet(stage) };
}

/** A plain command line as a job. */
export const commandJob = (command: readonly string[], array?: number): unknown => ({
  name: typedLine(command),
  stages: [{ name: "run", run: [...command], ...(array !== undefined && { array }) }],
});

/** A command as one would type it in a shell: what has spaces or signs of the shell's in it is quoted. */
export function typedLine(command: readonly string[]): string {
  const line = command
    .map(quoted)
    .join(" ")
    .replace(/\p{Cc}+/gu, " ")
    .trim();
  return (line.length <= nameLengthMax ? line : `${line.slice(0, nameLengthMax - 4)} ...`) || "job";
}

const quoted = (word: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

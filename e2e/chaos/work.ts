/** The work of the chaos runs: its tasks wait for a while and record that they ran; plans are made from the spec. */
import { createHash } from "node:crypto";
import type { Random } from "#base/random.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import type { Plan, StageSpec, TaskSet, TaskTemplate } from "#kernel/model/model.ts";
import { planSubmit } from "#doors/shell/plan.ts";
import { ShellJob } from "#doors/shell/request.ts";
import type { Order } from "#shard/client/client.ts";
import type { Planners, Runners } from "#worker/runner.ts";
import { shellHappening, type AttemptLog } from "./attempts.ts";

export const label = "chaos=yes";
const kind = "chaos.wait";
const planKind = "chaos.plan";

type TaskScript = { readonly waitMs: number; readonly outputBytes: number };
/** The spec of a job: what a planned stage is to do. */
type JobScript = { readonly planned: readonly TaskScript[]; readonly leaseMs: number; readonly graceMs: number };

export type Times = { readonly leaseMs: number; readonly graceMs: number };

const template = ({ leaseMs, graceMs }: Times): TaskTemplate => ({
  kind,
  requires: [label],
  leaseMs,
  attemptsMax: 100,
  retryOn: "infrastructure",
  backoffMs: 50,
  backoffMsMax: 500,
  queueMs: 3_600_000,
  attemptMs: 600_000,
  effects: "pure",
  speculate: false,
  graceMs,
});

const taskSet = (scripts: readonly TaskScript[], times: Times): TaskSet => ({
  template: template(times),
  tasks: scripts.map((script, i) => ({ key: String(i), spec: JSON.stringify(script) })),
});

const stage = (name: string, needs: readonly number[], rest: Pick<StageSpec, "tasks" | "plan">): StageSpec => ({
  name,
  needs,
  after: "success",
  failFast: false,
  mayFail: false,
  parallelMax: 0,
  ...rest,
});

export type Shape = "one" | "graph" | "planned" | "command";
export const shapes: readonly Shape[] = ["one", "graph", "planned", "command"];

export type OrderWishes = Times & {
  readonly key: string;
  readonly waitMsMax: number;
  readonly waitMsMin?: number;
  /** Where commands record that they ran. */
  readonly attemptsFolder: string;
};

/**
 * A small job: one task, a graph of three stages, a planned stage after a known one, or two commands, which the nodes
 * themselves run.
 */
export function makeOrder(shape: Shape, random: Random, wishes: OrderWishes): Order {
  return shape === "command" ? commandOrder(random, wishes) : chaosOrder(shape, random, wishes);
}

function commandOrder(random: Random, { key, waitMsMax, attemptsFolder }: OrderWishes): Order {
  const lines = [
    shellHappening("start", attemptsFolder),
    `sleep ${(random.below(waitMsMax + 1) / 1_000).toFixed(3)}`,
    shellHappening("end", attemptsFolder),
  ];
  const stages = [
    { name: "one", run: lines.join("\n"), attempts: 100, backoff: "50ms" },
    { name: "two", run: lines.join("\n"), attempts: 100, backoff: "50ms", needs: ["one"] },
  ];
  return planSubmit(ShellJob.parse({ name: "command", stages }), { tenant: "commands", key, unique: key });
}

function chaosOrder(shape: Exclude<Shape, "command">, random: Random, wishes: OrderWishes): Order {
  const { key, waitMsMax, waitMsMin = 0, leaseMs, graceMs } = wishes;
  const script = (): TaskScript => ({
    waitMs: random.between(waitMsMin, waitMsMax),
    outputBytes: random.chance(0.25) ? random.between(1, 2_000) : 0,
  });
  const scripts = (count: number): readonly TaskScript[] => Array.from({ length: count }, script);
  const tasks = (count: number) => ({ tasks: taskSet(scripts(count), wishes) });
  const plan = { kind: planKind, requires: [label], leaseMs, attemptsMax: 100, deadlineMs: 600_000 };
  const stages = {
    one: () => [stage("only", [], tasks(1))],
    graph: () => [stage("first", [], tasks(1)), stage("wide", [0], tasks(3)), stage("last", [0, 1], tasks(1))],
    planned: () => [stage("known", [], tasks(1)), stage("planned", [0], { plan })],
  }[shape]();
  const jobScript: JobScript = { planned: shape === "planned" ? scripts(2) : [], leaseMs, graceMs };
  const spec = JSON.stringify(jobScript);
  return {
    shardKey: key,
    tenant: `tenant-${random.below(3)}`,
    door: "chaos",
    name: shape,
    requestKey: key,
    payloadHash: createHash("sha256").update(spec).update(JSON.stringify(stages)).digest("hex"),
    priority: 0,
    spec,
    stages,
    deadlineMs: 3_600_000,
  };
}

/** Work that no executor can run: it stays in the queue. */
export function idleOrder(key: string, tasks: number): Order {
  const set = taskSet(
    Array.from({ length: tasks }, () => ({ waitMs: 0, outputBytes: 0 })),
    { leaseMs: 60_000, graceMs: 0 },
  );
  const idle = { ...set, template: { ...set.template, requires: [idleLabel] } };
  return {
    shardKey: key,
    tenant: "idle",
    door: "chaos",
    name: "idle",
    payloadHash: key,
    priority: 0,
    spec: "{}",
    stages: [stage("idle", [], { tasks: idle })],
    deadlineMs: 3_600_000,
  };
}
export const idleLabel = "chaos=idle";

export const chaosRunners = (log: AttemptLog): Runners => ({
  [kind]: async ({ task, signal, clock }) => {
    const { waitMs, outputBytes } = JSON.parse(task.spec) as TaskScript;
    log.add("start", task);
    try {
      await clock.sleep(waitMs, signal);
    } catch (error) {
      log.add("stopped", task);
      throw error;
    }
    log.add("end", task);
    const bytes = Buffer.alloc(outputBytes, `${task.taskId} `);
    const outputs = outputBytes > 0 ? [{ digest: sha256Digest(bytes), bytes }] : [];
    return { kind: "done", payload: `${task.taskId} ${task.key}`, outputs };
  },
});

export const chaosPlanners: Planners = {
  [planKind]: ({ spec }): Plan => {
    const { planned, ...times } = JSON.parse(spec) as JobScript;
    return { kind: "tasks", set: taskSet(planned, times) };
  },
};

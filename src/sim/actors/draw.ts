/** What the shapes of jobs are drawn with: stages, templates, scripts and locks, each from the seed. */
import type { Random } from "#base/random.ts";
import type { Submit } from "#kernel/model/command.ts";
import type { FailReason, LockSpec, PlanSpec, StageSpec, TaskTemplate } from "#kernel/model/model.ts";
import { type JobScript, type PlanScript, type TaskScript, writeScript } from "./script.ts";

export type DrawnJob = {
  readonly submit: Submit;
  /** Signals that must be sent for the job to continue, by stage index. */
  readonly signals: readonly { readonly stage: number; readonly name: string }[];
  /** What other clients submit at the same time. */
  readonly also?: readonly Submit[];
  /** Submitted afterwards, to any shard: its end is told to the first stage. */
  readonly child?: Submit;
};

export type DrawContext = {
  readonly random: Random;
  readonly tenant: string;
  readonly name: string;
  /** The middle of the range that leases are drawn from. */
  readonly leaseMs: number;
  readonly labels: readonly string[];
};

export const hour = 3_600_000;
const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
export const infrastructure: readonly FailReason[] = ["preempted", "out-of-memory", "input-lost", "executor-lost"];

export const withSubmit = (drawn: DrawnJob, change: Partial<Submit>): DrawnJob => ({
  ...drawn,
  submit: { ...drawn.submit, ...change },
});

export function job(c: DrawContext, stages: readonly StageSpec[], plans: JobScript["plans"] = {}): DrawnJob {
  const spec = writeScript({ plans });
  const submit: Submit = {
    kind: "submit",
    tenant: c.tenant,
    door: "sim",
    name: c.name,
    payloadHash: `hash-${c.name}`,
    priority: c.random.chance(0.3) ? c.random.between(-100, 100) : 0,
    spec,
    stages,
    deadlineMs: 6 * hour,
    ...(c.random.chance(0.1) ? { trace } : {}),
    ...(c.random.chance(0.1) ? { tracked: true } : {}),
  };
  return { submit, signals: [] };
}

export function stage(
  c: DrawContext,
  name: string,
  wanted: {
    readonly tasks: number;
    readonly failFast?: boolean;
    readonly mayFail?: boolean;
    readonly parallelMax?: number;
    readonly outside?: boolean;
  },
): StageSpec {
  const scripts = Array.from({ length: wanted.tasks }, () => taskScript(c));
  return {
    name,
    needs: [],
    after: "success",
    tasks: taskSet(templateOf(c, wanted.outside ?? c.random.chance(0.2)), scripts),
    failFast: wanted.failFast ?? false,
    mayFail: wanted.mayFail ?? false,
    parallelMax: wanted.parallelMax ?? 0,
  };
}

export const planSpec = (c: DrawContext): PlanSpec => ({
  kind: "sim",
  requires: ["plan=sim-1"],
  leaseMs: c.leaseMs,
  attemptsMax: 50,
  deadlineMs: 5 * hour,
});

export function planned(c: DrawContext, name: string): StageSpec {
  return { name, needs: [], after: "success", plan: planSpec(c), failFast: false, mayFail: false, parallelMax: 0 };
}

export function planScript(c: DrawContext): PlanScript {
  const kind = c.random.chance(0.75) ? ("tasks" as const) : c.random.pick(["skip", "fail"] as const);
  const scripts = Array.from({ length: c.random.below(4) }, () => taskScript(c));
  const answer = kind === "tasks" ? { kind, template: templateOf(c, false), tasks: scripts } : { kind };
  return { waitMs: 0, answer, ...(c.random.chance(0.02) ? { stuck: true } : {}) };
}

export const taskSet = (template: TaskTemplate, scripts: readonly TaskScript[]) => ({
  template,
  tasks: scripts.map((script, i) => ({ key: `k${i}`, spec: writeScript(script), affinity: `host-${i % 3}` })),
});

export function templateOf(c: DrawContext, outside: boolean): TaskTemplate {
  const leaseMs = Math.round(c.leaseMs * (0.5 + c.random.fraction()));
  return {
    kind: "sim",
    requires: c.random.chance(0.3) ? [c.random.pick(c.labels)] : [],
    leaseMs,
    attemptsMax: 50,
    retryOn: c.random.chance(0.7) ? "any" : "infrastructure",
    backoffMs: c.random.pick([0, 100, 500]),
    backoffMsMax: 2_000,
    queueMs: 5 * hour,
    attemptMs: hour,
    effects: outside ? "outside" : "pure",
    speculate: false,
    graceMs: outside ? 0 : c.random.pick([0, leaseMs, leaseMs * 4]),
    ...(c.random.chance(0.1) ? { stopMs: c.random.between(100, 20_000) } : {}),
  };
}

export function taskScript(c: DrawContext): TaskScript {
  const fails = c.random.chance(0.25);
  return {
    runMs: c.random.chance(0.15) ? c.random.between(2_000, 15_000) : c.random.between(1, 800),
    failures: fails ? c.random.between(1, 3) : 0,
    reason: c.random.chance(0.3) ? "user-failure" : c.random.pick(infrastructure),
    outputs: c.random.below(3),
    steps: c.random.chance(0.3) ? c.random.between(1, 3) : 0,
    publish: c.random.chance(0.4),
    leaves: fails ? c.random.below(3) : 0,
    checkpoints: c.random.chance(0.25) ? c.random.between(1, 3) : 0,
  };
}

export function lock(c: DrawContext, scope: string): LockSpec {
  // The limit depends on the name, so that all requests for a lock agree on it.
  const which = c.random.below(2);
  return {
    name: `${scope}-${which}`,
    limit: which + 1,
    queueMax: c.random.pick([1, 1, 3, 100, 100]),
    cancelInProgress: c.random.chance(0.3),
  };
}

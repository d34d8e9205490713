/** The jobs that are submitted to the cluster, as data: shapes of jobs, each drawn from the seed. */
import type { Submit } from "#kernel/model/command.ts";
import type { StageSpec, TaskTemplate } from "#kernel/model/model.ts";
import { familyShapes } from "./family-shapes.ts";
import { arrayShapes } from "./array-shapes.ts";
import { engineShapes } from "./engine-shapes.ts";
import {
  hour,
  job,
  lock,
  planned,
  planScript,
  planSpec,
  stage,
  taskScript,
  taskSet,
  templateOf,
  withSubmit,
} from "./draw.ts";
import type { DrawContext, DrawnJob } from "./draw.ts";
import type { PlanScript, TaskScript } from "./script.ts";

export type ShapeName = keyof typeof shapes;

export const shapes = {
  /** One action of a build. */
  single: (c: DrawContext) => job(c, [stage(c, "only", { tasks: 1 })]),

  /** A matrix. */
  matrix: (c: DrawContext) =>
    job(c, [
      stage(c, "matrix", {
        tasks: c.random.between(2, 12),
        failFast: c.random.chance(0.5),
        parallelMax: c.random.chance(0.4) ? c.random.between(1, 3) : 0,
      }),
    ]),

  /** Stages with random needs, some of which run after a failure too. */
  dag(c: DrawContext) {
    const count = c.random.between(2, 5);
    const stages = Array.from({ length: count }, (_, i) => ({
      ...stage(c, `s${i}`, { tasks: c.random.between(1, 3), mayFail: c.random.chance(0.3) }),
      needs: Array.from({ length: i }, (_unused, n) => n).filter(() => c.random.chance(0.5)),
      after: c.random.chance(0.3) ? ("end" as const) : ("success" as const),
    }));
    return job(c, stages);
  },

  /** A stage whose tasks are found out when the first has ended. */
  planned(c: DrawContext) {
    const firsts = Array.from({ length: c.random.between(1, 2) }, (_, i) =>
      stage(c, `first-${i}`, { tasks: c.random.between(1, 3) }),
    );
    const second = { ...planned(c, "second"), needs: firsts.map((_, i) => i) };
    return job(c, [...firsts, second], { second: planScript(c) });
  },

  /** A gate: the planner waits for an approval, then answers with the tasks. */
  gated(c: DrawContext) {
    const script: PlanScript = { ...planScript(c), signal: "approve" };
    const before = c.random.chance(0.4) ? [stage(c, "before", { tasks: 1 })] : [];
    const gate = before.length;
    const stages = [
      ...before,
      { ...planned(c, "gate"), needs: before.map((_, i) => i) },
      { ...stage(c, "after", { tasks: 1 }), needs: [gate] },
    ];
    return { ...job(c, stages, { gate: script }), signals: [{ stage: gate, name: "approve" }] };
  },

  /** A wait that no signal ends: the planner is called again after a time. */
  timed(c: DrawContext) {
    return job(c, [planned(c, "timed")], { timed: { ...planScript(c), waitMs: c.random.between(200, 4_000) } });
  },

  /** Several callers want the same, and some leave. */
  merged(c: DrawContext) {
    const drawn = c.random.chance(0.7)
      ? job(c, [stage(c, "shared", { tasks: c.random.between(1, 2) })])
      : job(c, [planned(c, "shared")], { shared: { ...planScript(c), waitMs: 2_000 } });
    const mergeKey = `merge-${c.random.below(2)}`;
    const caller = c.random.chance(0.8) ? { subscriber: `${c.name}-caller` } : {};
    const submit = { ...drawn.submit, mergeKey, ...caller, leaveGraceMs: c.random.pick([0, 1_000, 5_000]) };
    const others = Array.from({ length: c.random.below(3) }, (_, i) => ({
      ...drawn.submit,
      mergeKey,
      ...(c.random.chance(0.7) ? { subscriber: `${c.name}-other-${i}` } : {}),
      priority: c.random.between(-100, 100),
    }));
    // A caller that joins is told the number.
    const numbered = c.random.chance(0.2) ? { series: c.random.pick(["one", "two"]) } : {};
    return { ...drawn, submit: { ...submit, ...numbered }, also: others };
  },

  /** One at a time, or a few: the whole job holds the lock. */
  locked(c: DrawContext) {
    const drawn = job(c, [stage(c, "critical", { tasks: c.random.between(1, 2), outside: true })]);
    return { ...drawn, submit: { ...drawn.submit, lock: lock(c, "job") } };
  },

  /** One stage holds the lock, or two; and something may be left to do after they released it. */
  lockedStage(c: DrawContext) {
    const held = lock(c, "stage");
    const critical = (name: string): StageSpec => ({
      ...stage(c, name, { tasks: c.random.between(1, 2), outside: true }),
      needs: [0],
      lock: held,
    });
    const stages = [stage(c, "free", { tasks: 1 }), critical("critical")];
    if (c.random.chance(0.3)) stages.push(critical("as critical"));
    if (c.random.chance(0.5)) stages.push({ ...stage(c, "after", { tasks: 2 }), needs: [1] });
    return job(c, stages);
  },

  /** Each task takes a lock of its own or one that it shares, listed at once or planned, and may run for too long. */
  lockedTasks(c: DrawContext) {
    const template = (): TaskTemplate => ({
      ...templateOf(c, true),
      ...(c.random.chance(0.3) ? { attemptMs: 500 + c.random.below(3_000), attemptsMax: 2 } : {}),
      lock: lock(c, c.random.chance(0.8) ? "task" : "stage"),
    });
    const scripts = () => Array.from({ length: c.random.between(1, 3) }, () => taskScript(c));
    if (c.random.chance(0.5)) {
      const parallelMax = c.random.chance(0.3) ? 1 : 0;
      return job(c, [{ ...stage(c, "critical", { tasks: 1, parallelMax }), tasks: taskSet(template(), scripts()) }]);
    }
    const more = c.random.chance(0.5) ? [{ template: template(), tasks: scripts() }] : [];
    const answer = { kind: "tasks" as const, template: template(), tasks: scripts(), more };
    return job(c, [planned(c, "critical")], { critical: { waitMs: 0, answer } });
  },

  /** Holds a lock, and runs longer than it may: the lock must wait until it has really stopped. */
  lockedEndless(c: DrawContext) {
    const attemptMs = 500 + c.random.below(3_000);
    const template = { ...templateOf(c, true), attemptMs, attemptsMax: c.random.between(1, 2) };
    const script = { ...taskScript(c), failures: 0, runMs: 30_000 };
    const stages = [{ ...stage(c, "critical", { tasks: 1 }), tasks: taskSet(template, [script]) }];
    const drawn = job(c, stages);
    return {
      ...drawn,
      submit: { ...drawn.submit, lock: { ...lock(c, "job"), queueMax: 100, cancelInProgress: false } },
    };
  },

  /** The planner gives no plan until it is too late. */
  unplanned(c: DrawContext) {
    const plan = { ...planned(c, "late"), plan: { ...planSpec(c), deadlineMs: c.random.between(500, 6_000) } };
    return job(c, [plan], { late: { ...planScript(c), waitMs: 20_000 } });
  },

  /** One tenant submits very much at once. */
  flood(c: DrawContext) {
    const stages = [stage(c, "flood", { tasks: c.random.between(20, 60) })];
    return job(c, c.random.chance(0.3) ? [...stages, stage(c, "more", { tasks: 2 })] : stages);
  },

  /** Many tasks of which one is slow: for speculation. */
  straggler(c: DrawContext) {
    const rule = { percentile: c.random.pick([50, 75]), factorPercent: 150, slots: c.random.between(1, 2) };
    const template = {
      ...templateOf(c, false),
      speculate: true,
      leaseMs: c.leaseMs * 2,
      ...(c.random.chance(0.5) && { speculation: rule }),
    };
    const scripts = Array.from({ length: c.random.between(4, 8) }, (_, i) => ({
      ...taskScript(c),
      failures: 0,
      runMs: i === 0 ? 15_000 : 100,
    }));
    const wide = { ...stage(c, "wide", { tasks: 1 }), tasks: taskSet(template, scripts) };
    if (c.random.chance(0.5)) return job(c, [wide]);
    // Its inputs may get lost while it runs.
    return job(c, [stage(c, "prepare", { tasks: 1 }), { ...wide, needs: [0] }]);
  },

  /** Ends by its deadline unless it is fast. */
  hurried(c: DrawContext) {
    const drawn = job(c, [stage(c, "soon", { tasks: c.random.between(1, 4) })]);
    return { ...drawn, submit: { ...drawn.submit, deadlineMs: c.random.between(500, 20_000) } };
  },

  /** No executor can run it: it ends by its queue deadline. */
  impossible(c: DrawContext) {
    const template = { ...templateOf(c, false), requires: ["os=plan9"], queueMs: c.random.between(1_000, 30_000) };
    return job(c, [{ ...stage(c, "never", { tasks: 1 }), tasks: taskSet(template, [taskScript(c)]) }]);
  },

  /** Due in a minute or more: such things are filed in coarse buckets, and looked at too early at first. */
  far(c: DrawContext) {
    const farMs = c.random.between(62_000, 85_000);
    const never = (queueMs: number) => {
      const template = { ...templateOf(c, false), requires: ["os=plan9"], queueMs };
      return job(c, [{ ...stage(c, "never", { tasks: 1 }), tasks: taskSet(template, [taskScript(c)]) }]);
    };
    const ways: readonly (() => DrawnJob)[] = [
      () => job(c, [planned(c, "timed")], { timed: { ...planScript(c), waitMs: farMs } }),
      () => never(farMs),
      () => withSubmit(never(5 * hour), { deadlineMs: farMs }),
      () => withSubmit(never(2 * farMs), { mergeKey: "far", subscriber: `${c.name}-caller`, leaveGraceMs: farMs }),
      () => {
        const template = { ...templateOf(c, false), backoffMs: 2 * farMs, backoffMsMax: 2 * farMs };
        const script: TaskScript = { ...taskScript(c), failures: 1, reason: "preempted" };
        return job(c, [{ ...stage(c, "patient", { tasks: 1 }), tasks: taskSet(template, [script]) }]);
      },
      () => {
        // It fails long before its first result is used.
        const template: TaskTemplate = { ...templateOf(c, false), retryOn: "infrastructure" };
        const shy: TaskScript = { ...taskScript(c), failures: 0, publish: true, refusedMs: farMs + 20_000 };
        const doomed: TaskScript = { ...taskScript(c), failures: 1, reason: "user-failure" };
        return job(c, [
          { ...stage(c, "shy", { tasks: 1 }), tasks: taskSet(template, [shy]) },
          { ...stage(c, "doomed", { tasks: 1 }), needs: [0], tasks: taskSet(template, [doomed]) },
        ]);
      },
    ];
    return c.random.pick(ways)();
  },

  /** Runs longer than it may. */
  endless(c: DrawContext) {
    const template = { ...templateOf(c, false), attemptMs: 1_000 + c.random.below(4_000), attemptsMax: 2 };
    const script = { ...taskScript(c), failures: 0, runMs: 120_000 };
    return job(c, [{ ...stage(c, "endless", { tasks: 1 }), tasks: taskSet(template, [script]) }]);
  },

  ...engineShapes,
  ...arrayShapes,
  ...familyShapes,
};

/** A client that waits for a job that others submitted, and submits nothing itself. */
export const joining = ({ tenant, door, payloadHash }: Submit, mergeKey: string): Submit => ({
  kind: "submit",
  tenant,
  door,
  payloadHash,
  mergeKey,
  joinOnly: true,
  name: "",
  spec: "",
  priority: 0,
  stages: [],
  deadlineMs: 0,
});

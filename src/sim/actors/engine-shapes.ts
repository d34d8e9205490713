/** Jobs that use what plans, cancellations and attempts can say besides the plain. */
import {
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
import type { PlanScript } from "./script.ts";

export const engineShapes = {
  /** Several stragglers, and few slots for second attempts. */
  crowd(c: DrawContext): DrawnJob {
    const speculation = { percentile: 50, factorPercent: 150, slots: 1 };
    const template = { ...templateOf(c, false), speculate: true, leaseMs: c.leaseMs * 2, requires: [], speculation };
    const scripts = Array.from({ length: 6 }, (_, i) => ({
      ...taskScript(c),
      failures: 0,
      runMs: i < 3 ? 12_000 : 100,
    }));
    return job(c, [{ ...stage(c, "crowd", { tasks: 1 }), tasks: taskSet(template, scripts) }]);
  },

  /** Attempts are lost to infrastructure: a few of them are free. */
  unlucky(c: DrawContext): DrawnJob {
    const lossesMax = c.random.between(1, 3);
    const template = { ...templateOf(c, false), attemptsMax: c.random.between(1, 2), lossesMax, backoffMs: 0 };
    const script = { ...taskScript(c), failures: c.random.between(1, 5), reason: "preempted" as const };
    return job(c, [{ ...stage(c, "unlucky", { tasks: 1 }), tasks: taskSet(template, [script]) }]);
  },

  /** Its template says for which reasons there is another attempt. */
  choosy(c: DrawContext): DrawnJob {
    const retries = { "user-failure": c.random.between(0, 2), preempted: c.random.between(0, 2) };
    const template = { ...templateOf(c, false), attemptsMax: c.random.between(2, 5), retries, backoffMs: 0 };
    const reason = c.random.chance(0.5) ? ("user-failure" as const) : ("preempted" as const);
    const script = { ...taskScript(c), failures: c.random.between(1, 4), reason };
    return job(c, [{ ...stage(c, "choosy", { tasks: 1 }), tasks: taskSet(template, [script]) }]);
  },

  /** Long tasks that are told something while they run. */
  told(c: DrawContext): DrawnJob {
    const scripts = Array.from({ length: c.random.between(1, 3) }, () => ({ ...taskScript(c), runMs: 9_000 }));
    const long = { ...stage(c, "long", { tasks: 1 }), tasks: taskSet(templateOf(c, c.random.chance(0.3)), scripts) };
    const signals = Array.from({ length: c.random.between(1, 3) }, (_, i) => ({ stage: 0, name: `news-${i}` }));
    return { ...job(c, [long]), signals };
  },

  /** The plan has several sets and decides about its stage, a lock above all; or it skips, and must take no lock. */
  decided(c: DrawContext): DrawnJob {
    const first = stage(c, "first", { tasks: 1 });
    const second = { ...planned(c, "second"), needs: [0] };
    // The plan must not name a second lock of the stage, nor the job's own: such plans are refused until there is none.
    const few = { ...planSpec(c), attemptsMax: 2 };
    const [isHeld, isJobHeld] = [c.random.chance(0.15), c.random.chance(0.2)];
    const locked = isHeld
      ? { ...second, plan: few, lock: lock(c, "stage") }
      : isJobHeld
        ? { ...second, plan: few }
        : second;
    const drawn = job(c, [first, locked], { second: decidingScript(c) });
    // Always the same one, so that no two jobs take two locks in different order.
    return isJobHeld ? withSubmit(drawn, { lock: { ...lock(c, "stage"), name: "stage-1", limit: 2 } }) : drawn;
  },

  /** What comes last runs even if the job is cancelled: planned or not, after one stage or after each other. */
  cleaned(c: DrawContext): DrawnJob {
    const work = { ...stage(c, "work", { tasks: c.random.between(1, 3) }), failFast: c.random.chance(0.3) };
    const needs = [0];
    const undo = c.random.chance(0.7)
      ? { ...planned(c, "undo"), needs, after: "end" as const }
      : { ...stage(c, "undo", { tasks: 1, outside: true }), needs, after: "end" as const };
    const tell = { ...stage(c, "tell", { tasks: 1 }), needs: [1], after: "end" as const };
    const never = { ...stage(c, "never", { tasks: 1 }), needs: [1] };
    const stages = [work, undo, ...(c.random.chance(0.6) ? [tell] : []), ...(c.random.chance(0.3) ? [never] : [])];
    const script = { ...planScript(c), ...(c.random.chance(0.4) ? { waitMs: c.random.between(200, 6_000) } : {}) };
    const drawn = job(c, stages, { undo: script });
    return c.random.chance(0.5) ? withSubmit(drawn, { cancelGraceMs: c.random.pick([500, 5_000, 60_000]) }) : drawn;
  },
};

function decidingScript(c: DrawContext): PlanScript {
  const drawn = planScript(c);
  if (drawn.answer.kind !== "tasks") return drawn;
  const outside = c.random.chance(0.5);
  const more = Array.from({ length: c.random.below(3) }, () => ({
    template: templateOf(c, outside),
    tasks: Array.from({ length: c.random.below(3) }, () => taskScript(c)),
  }));
  const decides = {
    ...(c.random.chance(0.6) ? { lock: lock(c, "stage") } : {}),
    ...(c.random.chance(0.4) ? { failFast: c.random.chance(0.5) } : {}),
    ...(c.random.chance(0.3) ? { mayFail: c.random.chance(0.5) } : {}),
    ...(c.random.chance(0.4) ? { parallelMax: c.random.below(3) } : {}),
  };
  const again = c.random.chance(0.5) ? { lockAgain: lock(c, "stage") } : {};
  return { ...drawn, answer: { ...drawn.answer, template: templateOf(c, outside), more, decides, ...again } };
}

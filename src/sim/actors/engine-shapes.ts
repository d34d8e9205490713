/** Jobs that use what plans, cancellations and attempts can say besides the plain. */
import { job, lock, planned, planScript, stage, taskScript, templateOf } from "./draw.ts";
import type { DrawContext, DrawnJob } from "./draw.ts";
import type { PlanScript } from "./script.ts";

export const engineShapes = {
  /** The plan has several sets and decides about its stage, a lock above all; or it skips, and must take no lock. */
  decided(c: DrawContext): DrawnJob {
    const first = stage(c, "first", { tasks: 1 });
    const second = { ...planned(c, "second"), needs: [0] };
    return job(c, [first, second], { second: decidingScript(c) });
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
  return { ...drawn, answer: { ...drawn.answer, template: templateOf(c, outside), more, decides } };
}

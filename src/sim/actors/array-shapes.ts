/** Jobs with arrays of tasks: submitted, planned, and as inputs of each other. */
import { job, planned, stage, taskScript, templateOf } from "./draw.ts";
import type { DrawContext, DrawnJob } from "./draw.ts";
import { writeScript } from "./script.ts";

export const arrayShapes = {
  /** One array feeds another, or a plan, which may answer with an array. Results are lost, and made again. */
  arrays(c: DrawContext): DrawnJob {
    const make = { ...arrayStage(c, "make"), failFast: c.random.chance(0.2), mayFail: c.random.chance(0.2) };
    const take = { ...arrayStage(c, "take"), needs: [0], after: c.random.chance(0.3) ? ("end" as const) : make.after };
    const tell = { ...planned(c, "tell"), needs: [c.random.below(2)] };
    const stages = c.random.chance(0.5) ? [make, take, tell] : [make, take];
    const array = { count: c.random.between(0, 6), script: taskScript(c) };
    const answer = { kind: "tasks" as const, template: templateOf(c, false), tasks: [], array };
    return job(c, stages, { tell: { waitMs: 0, answer } });
  },
};

function arrayStage(c: DrawContext, name: string): ReturnType<typeof stage> {
  const attemptsMax = c.random.pick([1, 50, 50]);
  const template = { ...templateOf(c, c.random.chance(0.2)), speculate: false, attemptsMax };
  const queueMs = c.random.chance(0.1) ? 3_000 : template.queueMs;
  const spec = writeScript({ ...taskScript(c), runMs: c.random.between(1, 600) });
  const array = { count: c.random.pick([0, 1, 3, 8, 20]), spec, ...(c.random.chance(0.5) ? { first: 7 } : {}) };
  const parallelMax = c.random.chance(0.3) ? c.random.between(1, 3) : 0;
  return { ...stage(c, name, { tasks: 0, parallelMax }), tasks: { template: { ...template, queueMs }, array } };
}

/** Jobs with tags and numbers, and jobs that wait for the end of others. */
import { job, planned, planScript, planSpec, stage, withSubmit } from "./draw.ts";
import type { DrawContext, DrawnJob } from "./draw.ts";
import type { PlanScript } from "./script.ts";

export const familyShapes = {
  /** Tagged, and the next of a series. */
  numbered(c: DrawContext): DrawnJob {
    const tags = [
      { name: "branch", value: c.random.pick(["main", "dev"]) },
      { name: "repo", value: "mill" },
    ];
    const drawn = job(c, [stage(c, "only", { tasks: 1 })]);
    return withSubmit(drawn, { series: c.random.pick(["one", "two"]), ...(c.random.chance(0.7) ? { tags } : {}) });
  },

  /** Waits until its child has ended. */
  parent(c: DrawContext): DrawnJob {
    const script: PlanScript = { ...planScript(c), signal: "ended:child" };
    const plain = job({ ...c, name: `${c.name}-child` }, [stage(c, "only", { tasks: c.random.between(1, 2) })]);
    // Its deadline may pass before its end can be told.
    const child = c.random.chance(0.4) ? withSubmit(plain, { deadlineMs: c.random.between(1_000, 8_000) }) : plain;
    // The child may be refused, or told too late: then the parent must end all the same.
    const waits = { ...planned(c, "waits"), plan: { ...planSpec(c), deadlineMs: c.random.between(20_000, 90_000) } };
    return { ...job(c, [waits], { waits: script }), child: child.submit };
  },
};

/** CI on one node: how soon jobs start, what steps cost, how soon lines of a log arrive, and runs by one POST each. */
import type { Suite } from "#bench/suite.ts";
import { logLatency } from "./log-latency.ts";
import { pickupBehindQueue, pickupIdle } from "./pickup.ts";
import { posts } from "./posts.ts";
import { stepOverhead } from "./steps.ts";

export const ci: Suite = {
  name: "ci",
  about: "CI on one node: pickup, step overhead beside act, log latency, viewers, runs by one POST each",
  notMeasured: [
    "a network between runner, node and database",
    "fairness between tenants, which is the kernel's (npm run bench kernel)",
    "200,000 running jobs held, and step transitions through the runner protocol",
    "growth over several shards",
  ],
  async run(report, { smoke }) {
    await pickupIdle(report, smoke ? 3 : 40);
    await pickupBehindQueue(report, smoke ? { runs: 1, cells: 10, seen: 3 } : { runs: 40, cells: 250, seen: 40 });
    await stepOverhead(report, smoke ? 10 : 100);
    await logLatency(report, smoke ? { seconds: 1, viewers: 2 } : { seconds: 5, viewers: 100 });
    await posts(report, smoke ? 20 : 500);
  },
};

/** CI on one node: how soon jobs start, what steps cost, how soon lines of a log arrive, and runs by one POST each. */
import type { Report } from "#bench/report.ts";
import type { Suite } from "#bench/suite.ts";
import { fairness } from "./fairness.ts";
import { heldJobs } from "./held.ts";
import { logLatency } from "./log-latency.ts";
import { pickupBehindQueue, pickupIdle } from "./pickup.ts";
import { posts } from "./posts.ts";
import { transitions } from "./protocol.ts";
import { checkpoints, lossToNextStep } from "./resume.ts";
import { stepOverhead } from "./steps.ts";

/** Each part takes a minute or two at most, also where the machine is shared. */
const full = {
  idle: 40,
  queued: { runs: 40, cells: 250, seen: 40 },
  steps: 100,
  log: { seconds: 5, viewers: 100 },
  posts: { runs: 2_000, completed: 40, shards: [1, 2, 4] },
  fairness: { runs: 40, cells: 250, samples: 15 },
  transitions: { forMs: 4_000, shards: [1, 2, 4] },
  held: { jobs: 200_000, runners: 200 },
  resume: { checkpoints: { empty: 30, few: 10_000, many: 100_000, bytes: 2 ** 30 }, losses: 10 },
};

const brief: typeof full = {
  idle: 3,
  queued: { runs: 1, cells: 10, seen: 3 },
  steps: 10,
  log: { seconds: 1, viewers: 3 },
  posts: { runs: 30, completed: 4, shards: [1] },
  fairness: { runs: 1, cells: 10, samples: 2 },
  transitions: { forMs: 300, shards: [1] },
  held: { jobs: 1_000, runners: 10 },
  resume: { checkpoints: { empty: 3, few: 100, many: 1_000, bytes: 2 ** 20 }, losses: 1 },
};

type Part = (report: Report, sizes: typeof full) => Promise<void>;

const parts: Readonly<Record<string, Part>> = {
  idle: (report, { idle }) => pickupIdle(report, idle),
  queued: (report, { queued }) => pickupBehindQueue(report, queued),
  steps: (report, { steps }) => stepOverhead(report, steps),
  log: (report, { log }) => logLatency(report, log),
  posts: (report, sizes) => posts(report, sizes.posts),
  fairness: (report, sizes) => fairness(report, sizes.fairness),
  transitions: (report, sizes) => transitions(report, sizes.transitions),
  held: (report, { held }) => heldJobs(report, held.jobs, held.runners),
  async resume(report, { resume }) {
    await checkpoints(report, resume.checkpoints);
    await lossToNextStep(report, resume.losses);
  },
};

export const ci: Suite = {
  name: "ci",
  about: "CI on one node: pickup, step overhead beside act, log latency, viewers, runs by one POST each, held jobs",
  notMeasured: ["a network between runner, node and database", "PostgreSQL, and several nodes"],
  async run(report, { smoke, only }) {
    const sizes = smoke ? brief : full;
    const wanted = Object.entries(parts).filter(([name]) => only === undefined || name === only);
    if (wanted.length === 0) throw new Error(`--only names one of: ${Object.keys(parts).join(", ")}`);
    for (const [, part] of wanted) await part(report, sizes);
  },
};

/** Deployments: differences, rollbacks, held agents, releases on PostgreSQL, and how long bad versions run. */
import type { Suite } from "#bench/suite.ts";
import { deltas } from "./delta.ts";
import { exposure } from "./exposure.ts";
import { heldAgents } from "./held.ts";
import { releases } from "./releases.ts";
import { rollbacks } from "./rollback.ts";

/** $MILLRACE_BENCH_AGENTS: as many held TLS streams as the machine's limit of open files allows. */
const agentsDefault = 2_000;

export const deploy: Suite = {
  name: "deploy",
  about: "deployments: deltas beside bsdiff, rollbacks, held TLS agents, releases on PostgreSQL, bad machine-minutes",
  notMeasured: [
    "the spreading of bytes, which is simulated (npm run swarm:sim)",
    "a network between nodes, agents and database",
    "several nodes",
  ],
  async run(report, { smoke }) {
    const agents = Number(process.env["MILLRACE_BENCH_AGENTS"] ?? agentsDefault);
    exposure(report, smoke ? 200 : 10_000, smoke ? 1 : 5);
    deltas(report);
    await rollbacks(report, smoke ? 1 : 5, smoke ? 1 : 8);
    await heldAgents(report, smoke ? 10 : agents);
    await releases(
      report,
      smoke ? { agents: 4, services: 2, seconds: 1 } : { agents: 400, services: 20, seconds: 120 },
    );
  },
};

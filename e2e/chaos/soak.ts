import { database, databaseRound } from "./scenario-database.ts";
import { handOverRound } from "./scenario-handover.ts";
import { kill, killRound, recovery } from "./scenario-kill.ts";
import { stopRound } from "./scenario-stop.ts";
import type { Round, Run, Scenario } from "./scenario.ts";

type Trouble = { readonly weight: number; readonly round: (run: Run, round: number) => Promise<Round> };

const troubles: readonly Trouble[] = [
  { weight: 10, round: killRound },
  { weight: 6, round: stopRound },
  // Under this much load the time of a hand-over is only reported, not checked.
  { weight: 3, round: async (run, round) => ({ ...(await handOverRound(run, round)), violations: [] }) },
  { weight: 1, round: databaseRound },
];

/** All scenarios, in random order, on one cluster, for as long as requested. */
export const soak: Scenario = {
  name: "soak",
  about: "kills, stops, hand-overs and outages of the database, in random order",
  rounds: { full: Number.POSITIVE_INFINITY, smoke: 0 },
  cluster: { ...kill.cluster, slots: database.cluster.slots },
  traffic: kill.traffic,
  async round(run, round) {
    let left = run.random.below(troubles.reduce((sum, { weight }) => sum + weight, 0));
    const trouble = troubles.find(({ weight }) => (left -= weight) < 0) ?? troubles[0];
    if (!trouble) throw new Error("no trouble to choose from");
    return await trouble.round(run, round);
  },
  sum: (rounds) => ({ rounds: rounds.length, ...recovery(rounds) }),
};

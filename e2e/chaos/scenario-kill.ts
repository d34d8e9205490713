import { setTimeout as pause } from "node:timers/promises";
import { spread } from "./figures.ts";
import { timeToAnswer } from "./probe.ts";
import type { Round, Run, Scenario } from "./scenario.ts";

/** kill -9 of a random node, again and again, while work flows. */
export const kill: Scenario = {
  name: "kill",
  about: "kill -9 a random node, start it again at once or after the others have taken over",
  rounds: { full: 50, smoke: 3 },
  cluster: { nodes: 3, shards: 12, leaseMs: 2_000, nodeSlots: 6, workers: 2, slots: 12 },
  traffic: { submitters: 4, pauseMsMax: 150, waitMsMax: 400, leaseMs: 3_000, graceMs: 10_000 },
  round: killRound,
  sum: (rounds) => ({ kills: rounds.length, ...recovery(rounds) }),
};

export async function killRound({ cluster, random }: Run): Promise<Round> {
  const victim = random.pick(cluster.nodes);
  const atOnce = random.chance(0.5);
  const owned = await cluster.owned(victim.name);
  const sinceMono = performance.now();
  await victim.child.kill();
  if (atOnce) cluster.restart(victim);
  const recoveryMs = await timeToAnswer(cluster.edge.router, owned, sinceMono, 60_000);
  if (!atOnce) cluster.restart(victim);
  await cluster.untilServed();
  // Sometimes the next kill comes while shards are still being moved back, sometimes when all is quiet.
  await pause(random.below(1_500));
  return {
    what: `killed ${victim.name} with ${owned.length} shards, ${atOnce ? "started again at once" : "left to the others"}`,
    recoveryMs,
  };
}

export function recovery(rounds: readonly Round[]): { recoveryP50Ms: number; recoveryMaxMs: number } {
  const { p50, max } = spread(rounds.flatMap(({ recoveryMs }) => recoveryMs));
  return { recoveryP50Ms: p50, recoveryMaxMs: max };
}

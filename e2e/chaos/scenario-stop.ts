import { setTimeout as pause } from "node:timers/promises";
import { systemClock } from "#door/system-clock.ts";
import { isFault } from "#base/fault.ts";
import type { Ownership } from "#journal/journal.ts";
import { createTcpTransport, type TcpTransport } from "#shard/transport/tcp.ts";
import type { Member } from "./cluster.ts";
import { timeToAnswer } from "./probe.ts";
import { recovery } from "./scenario-kill.ts";
import type { Round, Run, Scenario } from "./scenario.ts";

/** A node that was stopped past its lease must notice that it lost its shards before it answers anything. */
export const stop: Scenario = {
  name: "stop",
  about: "SIGSTOP a random node past its lease, then let it go on",
  rounds: { full: 20, smoke: 1 },
  cluster: { nodes: 3, shards: 12, leaseMs: 2_000, nodeSlots: 6, workers: 2, slots: 12 },
  traffic: { submitters: 4, pauseMsMax: 150, waitMsMax: 400, leaseMs: 3_000, graceMs: 10_000 },
  round: stopRound,
  sum: (rounds) => ({ stops: rounds.length, ...recovery(rounds) }),
};

export async function stopRound({ cluster, random }: Run): Promise<Round> {
  const victim = random.pick(cluster.nodes);
  const { leaseMs } = cluster.plan;
  const owned = await cluster.owned(victim.name);
  const transport = createTcpTransport({ clock: systemClock });
  try {
    await askDirectly(transport, victim, owned, 5_000); // connected before it is stopped
    const sinceMono = performance.now();
    victim.child.signal("SIGSTOP");
    const recoveryMs = await timeToAnswer(cluster.edge.router, owned, sinceMono, 60_000);
    const restMs = leaseMs * (1.2 + random.fraction()) - (performance.now() - sinceMono);
    await pause(Math.max(0, restMs));
    const newer = await cluster.journal.ownerships();
    // These requests wait in its socket and are the first thing that it sees.
    const answers = askDirectly(transport, victim, owned, 10_000);
    await pause(50);
    const asleepMs = performance.now() - sinceMono;
    victim.child.signal("SIGCONT");
    const violations = staleAnswers(victim, await answers, newer);
    await cluster.untilServed();
    await pause(random.below(1_000));
    const what = `stopped ${victim.name} with ${owned.length} shards for ${(asleepMs / 1_000).toFixed(1)} s`;
    return { what, recoveryMs, violations };
  } finally {
    victim.child.signal("SIGCONT");
    await transport.close();
  }
}

type DirectAnswer = { readonly shard: number; readonly epoch: number | undefined };

async function askDirectly(
  transport: TcpTransport,
  { address }: Member,
  shards: readonly Ownership[],
  limitMs: number,
): Promise<readonly DirectAnswer[]> {
  const ask = async (shard: number): Promise<DirectAnswer> => {
    try {
      const request = { kind: "query", shard, query: { kind: "stats" } } as const;
      const response = await transport.request(address, request, AbortSignal.timeout(limitMs));
      return { shard, epoch: response.kind === "answer" ? response.stamp.epoch : undefined };
    } catch (error) {
      if (!isFault(error) && (error as Error).name !== "TimeoutError") throw error;
      return { shard, epoch: undefined };
    }
  };
  return await Promise.all(shards.map(({ shard }) => ask(shard)));
}

/** K8: an answer under an epoch that had a successor when the request was sent. */
function staleAnswers(
  { name }: Member,
  answers: readonly DirectAnswer[],
  newer: readonly Ownership[],
): readonly string[] {
  const epochs = new Map(newer.map(({ shard, epoch }) => [shard, epoch]));
  return answers
    .filter(({ shard, epoch }) => epoch !== undefined && epoch < (epochs.get(shard) ?? 0))
    .map(({ shard, epoch }) => `${name} answered for shard ${shard} under epoch ${epoch} of ${epochs.get(shard)} (K8)`);
}

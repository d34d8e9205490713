import { setTimeout as pause } from "node:timers/promises";
import { systemClock } from "#door/system-clock.ts";
import { until } from "#testing/until.ts";
import { fill } from "./crowd.ts";
import { createEdge } from "./edge.ts";
import { spread } from "./figures.ts";
import { GapProbe } from "./probe.ts";
import type { Round, Run, Scenario } from "./scenario.ts";

const limitMs = 300;
/** If even shards that stay are silent for longer, the machine is too busy to judge those that move. */
const calmMsMax = 100;
const patience = { limitMs: 60_000, everyMs: 50 };

/** A node joins and gets its share, then leaves in order: how long a client of the moved shards gets no answer. */
export const handover: Scenario = {
  name: "handover",
  about: "a fourth node joins and leaves again, each time with shards that are in use",
  rounds: { full: 5, smoke: 0 },
  cluster: { nodes: 3, shards: 12, leaseMs: 5_000, nodeSlots: 4, workers: 2, slots: 8 },
  traffic: { submitters: 2, pauseMsMax: 100, waitMsMax: 200, leaseMs: 5_000, graceMs: 10_000 },
  prepare: ({ cluster }) => fill(cluster.client, cluster.plan.shards, { tasks: 5_000, singles: 0.2, claimed: 0.1 }),
  round: handOverRound,
  sum: (rounds) => {
    const all = rounds.flatMap(({ recoveryMs }) => recoveryMs);
    const { p50, max } = spread(all);
    const stayedMs = spread(rounds.map(({ figures }) => Number(figures?.["stayedMs"] ?? 0))).p50;
    const judged = rounds.reduce((sum, { figures }) => sum + Number(figures?.["judged"] ?? 0), 0);
    return { moves: all.length, judged, gapP50Ms: p50, gapMaxMs: max, stayedGapMs: stayedMs, limitMs };
  },
};

export async function handOverRound({ cluster, random }: Run, round: number): Promise<Round> {
  const stayed = cluster.addresses;
  const edge = createEdge({ clock: systemClock, random: random.fork("gap"), addresses: () => stayed, tryMs: 2_000 });
  const probes = Array.from({ length: cluster.plan.shards }, (_, shard) => new GapProbe(edge.router, shard));
  const extra = cluster.addNode(`x${round}`);
  try {
    await until(
      "the new node is there",
      async () => (await cluster.journal.nodes()).some(({ node, alive }) => node === extra.name && alive),
      patience,
    );
    const share = Math.floor(cluster.plan.shards / (stayed.length + 1));
    const joining = await watchGaps(probes, () =>
      until("the new node has its share", async () => (await cluster.owned(extra.name)).length >= share, patience),
    );
    cluster.forget(extra);
    const leaving = await watchGaps(probes, async () => {
      if (!(await extra.child.leave(20_000))) throw new Error(`${extra.name} did not leave when asked`);
    });
    const show = ({ movedMs, stayedMs }: Gaps): string =>
      `${movedMs.length} shards, silent for at most ${spread(movedMs).max} ms, others ${stayedMs} ms${stayedMs > calmMsMax ? ", too busy to judge" : ""}`;
    return {
      what: `${extra.name} joined (${show(joining)}) and left (${show(leaving)})`,
      recoveryMs: [...joining.movedMs, ...leaving.movedMs],
      figures: {
        stayedMs: Math.max(joining.stayedMs, leaving.stayedMs),
        judged: [joining, leaving].reduce((sum, each) => sum + (isCalm(each) ? each.movedMs.length : 0), 0),
      },
      violations: [...tooLong(joining), ...tooLong(leaving)],
    };
  } finally {
    if (cluster.nodes.includes(extra)) cluster.forget(extra);
    await extra.child.kill();
    await Promise.all(probes.map((probe) => probe.stop()));
    await edge.close();
  }
}

type Gaps = {
  /** The longest silence of each shard that moved. */
  readonly movedMs: readonly number[];
  /** The median of the same for shards that stayed: what a busy machine does to any of them. */
  readonly stayedMs: number;
};

async function watchGaps(probes: readonly GapProbe[], meanwhile: () => Promise<void>): Promise<Gaps> {
  await pause(200);
  for (const probe of probes) probe.reset();
  await meanwhile();
  await pause(500);
  const seen = probes.map((probe) => probe.seen);
  return {
    movedMs: seen.flatMap(({ moves, longestMs }) => (moves > 0 ? [longestMs] : [])),
    stayedMs: spread(seen.flatMap(({ moves, longestMs }) => (moves > 0 ? [] : [longestMs]))).p50,
  };
}

const isCalm = ({ stayedMs }: Gaps): boolean => stayedMs <= calmMsMax;

const tooLong = (gaps: Gaps): readonly string[] =>
  gaps.movedMs
    .filter((ms) => ms > limitMs && isCalm(gaps))
    .map((ms) => `a polite hand-over kept a client waiting for ${Math.round(ms)} ms (others: ${gaps.stayedMs} ms)`);

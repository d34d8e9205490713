import { until } from "#testing/until.ts";
import { countLive, fill } from "./crowd.ts";
import { timeToAnswer } from "./probe.ts";
import { recovery } from "./scenario-kill.ts";
import type { Run, Scenario } from "./scenario.ts";

const tasksPerNode = 100_000;
const limitMs = 7_000;

/** How long the shards of a crowded node are without an answer after it was killed. */
export const takeover: Scenario = {
  name: "takeover",
  about: `kill -9 a node whose shards hold ${tasksPerNode} live tasks, with a lease of 5 s`,
  rounds: { full: 3, smoke: 0 },
  cluster: { nodes: 2, shards: 8, leaseMs: 5_000, nodeSlots: 0, workers: 0, slots: 0 },
  traffic: undefined,
  async prepare({ cluster, say }) {
    const { shards, nodes } = cluster.plan;
    const sinceMono = performance.now();
    await fill(cluster.client, shards, { tasks: (tasksPerNode * nodes) / shards, singles: 0.2, claimed: 0.1 });
    say(`filled ${shards} shards in ${((performance.now() - sinceMono) / 1_000).toFixed(1)} s`);
  },
  async round(run) {
    const { cluster, random } = run;
    await untilBalanced(run);
    const victim = random.pick(cluster.nodes);
    const owned = await cluster.owned(victim.name);
    const shards = owned.map(({ shard }) => shard);
    const tasks = await countLive(cluster.client, shards);
    const sinceMono = performance.now();
    await victim.child.kill();
    const recoveryMs = await timeToAnswer(cluster.edge.router, owned, sinceMono, 60_000);
    const tasksAfter = await countLive(cluster.client, shards);
    cluster.restart(victim);
    await cluster.untilServed();
    const slowest = Math.round(Math.max(...recoveryMs));
    return {
      what: `killed ${victim.name} with ${owned.length} shards and ${tasks} live tasks`,
      recoveryMs,
      figures: { tasks },
      violations: [
        ...(slowest > limitMs ? [`taking over took ${slowest} ms, more than ${limitMs} ms`] : []),
        ...(tasks < tasksPerNode ? [`only ${tasks} live tasks were there, not ${tasksPerNode}`] : []),
        ...(tasksAfter === tasks ? [] : [`${tasks} live tasks before, ${tasksAfter} after`]),
      ],
    };
  },
  sum: (rounds) => ({
    kills: rounds.length,
    liveTasksMin: Math.min(...rounds.map(({ figures }) => Number(figures?.["tasks"] ?? 0))),
    ...recovery(rounds),
    limitMs,
  }),
};

async function untilBalanced({ cluster }: Run): Promise<void> {
  const { shards, nodes } = cluster.plan;
  await until(
    "every node has its share of the shards",
    async () => {
      const counts = await Promise.all(cluster.nodes.map(async ({ name }) => (await cluster.owned(name)).length));
      return counts.every((count) => count >= Math.floor(shards / nodes));
    },
    { limitMs: 60_000, everyMs: 100 },
  );
}

/**
 * A disk that returns wrong bytes: every corruption must be detected, and then the shard is not served at all, because
 * a wrong answer is worse than none; the others go on.
 */
import { equal, ok } from "node:assert/strict";
import { test } from "node:test";
import { Random } from "#base/random.ts";
import { Cluster } from "#sim/world/cluster.ts";
import { drawProfile, type Profile } from "#sim/profile.ts";
import { Trace } from "#sim/trace.ts";
import { World } from "#sim/world/world.ts";

const harms: Record<string, (cluster: Cluster, random: Random) => void> = {
  "a bit of a record flips": ({ database, court }, random) =>
    database.store.tamper.flipRecord(0, 1 + random.below(court.models[0]?.seq ?? 1), random.below(100_000)),
  "a record is gone": ({ database, court }, random) =>
    database.store.tamper.dropRecord(0, 1 + random.below((court.models[0]?.seq ?? 2) - 1)),
};

const calm = (seed: number): Profile => ({
  ...drawProfile(new Random(seed)),
  shards: 2,
  nodes: 2,
  executors: 2,
  rogues: 0,
  jobs: 8,
  stormMs: 8_000,
  tenants: [{ name: "tenant-0", weight: 1, runningMax: 0, queuedMax: 0 }],
  shapes: ["single", "matrix"],
  faults: new Map(),
  clientActions: new Map(),
  misbehaviour: new Map(),
  limits: {},
  endedKeepMs: 3_000,
  // Everything stays in the log: with a snapshot a damaged record would be skipped.
  snapshotBytes: 1e12,
});

for (const [name, harm] of Object.entries(harms))
  test(`${name}: the shard is not served, the other is`, async () => {
    for (let seed = 1; seed <= 6; seed += 1) {
      const lines: string[] = [];
      const world = new World(new Random(seed), new Trace(0, (line) => void lines.push(line)));
      const cluster = new Cluster(world, calm(seed));
      cluster.start();
      await world.run(8_000);
      for (const { machine } of cluster.nodes) machine.crash();
      // Appends on their way to the store arrive.
      await world.run(9_000);
      const before = cluster.court.models.map(({ seq }) => seq);
      harm(cluster, new Random(`harm ${seed}`));
      for (const node of cluster.nodes) node.boot();
      await world.run(40_000);
      const [damaged, sound] = cluster.court.models.map(({ seq }) => seq);
      equal(damaged, before[0], `SIM_SEED=${seed}: the damaged shard was written to`);
      ok((sound ?? 0) > (before[1] ?? 0), `SIM_SEED=${seed}: the other shard was not taken over`);
      ok(
        lines.some((line) => line.includes("reports:") && line.includes("corrupt")),
        `SIM_SEED=${seed}: nobody said that it is corrupt`,
      );
    }
  });

/** Meshes of 5 to 100 nodes on the simulated network. Each seed is run twice, and must give the same trace. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { Random } from "#base/random.ts";
import { profiles } from "#mesh/machine/profile.ts";
import { MeshWorld, type MeshWorldOptions } from "./mesh-world.ts";

const firstSeed = Number(process.env["SIM_SEED"] ?? 1);
const seeds = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => firstSeed + i);

/** Runs a scenario twice and returns the outcome of the first run. */
function told<T>(options: MeshWorldOptions, story: (world: MeshWorld) => T): T {
  const [world, again] = [new MeshWorld(options), new MeshWorld(options)];
  const outcome = story(world);
  story(again);
  equal(again.hash(), world.hash(), `SIM_SEED=${options.seed}: two runs of one seed differ`);
  return outcome;
}

function joined(world: MeshWorld): void {
  world.joinAll();
  ok(world.runUntil(() => world.isTrueForAll(), 30_000) !== undefined, "everybody knows everybody");
}

describe("a mesh in the simulator", () => {
  for (const seed of seeds(5))
    test(`SIM_SEED=${seed}: any faults for a while, then all agree on the truth`, () => {
      const random = new Random(`faults:${seed}`);
      const nodes = random.between(5, 50);
      const options = { seed, nodes, lossShare: random.pick([0, 0.05, 0.2]), doubledShare: 0.02 };
      told(options, (world) => {
        joined(world);
        storm(world, new Random(`storm:${seed}`));
        world.setLoss(0);
        const tookMs = world.runUntil(() => world.isTrueForAll(), 180_000);
        ok(tookMs !== undefined, `not all agree after the storm:\n${world.trace.slice(-30).join("\n")}`);
        world.run(30_000);
        ok(world.isTrueForAll(), "and so it stays");
      });
    });

  for (const seed of seeds(2))
    test(`SIM_SEED=${seed}: 100 nodes: a death is known everywhere within seconds`, () => {
      const world = new MeshWorld({ seed, nodes: 100 });
      joined(world);
      world.kill(37);
      const knownMs = world.runUntil(() => world.upNodes().every((i) => world.believes(i, 37) === "dead"), 60_000);
      ok(knownMs !== undefined && knownMs < 15_000, `it took ${knownMs} ms`);
      equal(world.count("deaths"), 99, "one death, and each heard of it once");
    });

  for (const seed of seeds(2))
    test(`SIM_SEED=${seed}: a restarted node has a higher incarnation, and its new metadata`, () => {
      told({ seed, nodes: 12, lossShare: 0.05 }, (world) => {
        joined(world);
        const before = incarnationOf(world, 5);
        world.kill(5);
        ok(world.runUntil(() => world.upNodes().every((i) => world.believes(i, 5) === "dead"), 60_000) !== undefined);
        world.restart(5, 3);
        ok(world.runUntil(() => world.isTrueForAll(), 60_000) !== undefined, world.trace.slice(-20).join("\n"));
        world.run(5_000);
        ok(incarnationOf(world, 5) > before);
        for (const i of world.upNodes()) {
          const seen = world
            .node(i)
            .machine.members(world.nowMs)
            .find(({ name }) => name === "n5");
          equal(seen?.tags["life"], "1");
        }
      });
    });

  test(`SIM_SEED=${firstSeed}: a restart too quick to be noticed`, () => {
    told({ seed: firstSeed, nodes: 8 }, (world) => {
      joined(world);
      world.kill(2);
      world.run(300);
      world.restart(2, 0);
      const isNew = (i: number): boolean =>
        world
          .node(i)
          .machine.members(world.nowMs)
          .some(({ name, tags }) => name === "n2" && tags["life"] === "1");
      ok(world.runUntil(() => world.isTrueForAll() && world.upNodes().every(isNew), 30_000) !== undefined);
      equal(world.count("deaths"), 0);
    });
  });

  test(`SIM_SEED=${firstSeed}: a node that leaves is "left", not failed, everywhere`, () => {
    told({ seed: firstSeed, nodes: 20, lossShare: 0.1 }, (world) => {
      joined(world);
      world.leave(4);
      const all = (): boolean => world.upNodes().every((i) => i === 4 || world.believes(i, 4) === "left");
      ok(world.runUntil(() => world.node(4).state === "killed", 30_000) !== undefined);
      ok(world.runUntil(all, 60_000) !== undefined);
      equal(world.count("deaths"), 0);
    });
  });

  test(`SIM_SEED=${firstSeed}: a stopped node fails, and comes back without declaring others dead`, () => {
    told({ seed: firstSeed, nodes: 10 }, (world) => {
      joined(world);
      world.stop(6);
      ok(world.runUntil(() => world.upNodes().every((i) => world.believes(i, 6) === "dead"), 60_000) !== undefined);
      world.run(60_000);
      world.resume(6);
      ok(world.runUntil(() => world.isTrueForAll(), 90_000) !== undefined, world.trace.slice(-20).join("\n"));
      equal(world.node(6).machine.counts.deaths, 0, "the stopped one blamed nobody");
      ok(world.node(6).machine.counts.stalls > 0);
    });
  });

  test(`SIM_SEED=${firstSeed}: a network that was cut for ten minutes merges again`, () => {
    told({ seed: firstSeed, nodes: 10 }, (world) => {
      joined(world);
      world.partition((i) => (i < 4 ? 1 : 2));
      world.run(600_000);
      equal(world.believes(0, 9), "dead");
      equal(world.believes(9, 0), "dead");
      equal(world.believes(0, 3), "alive");
      world.partition(undefined);
      const tookMs = world.runUntil(() => world.isTrueForAll(), 300_000);
      ok(tookMs !== undefined, world.trace.slice(-20).join("\n"));
    });
  });

  test(`SIM_SEED=${firstSeed}: with encryption and compression the outcome is the same`, () => {
    const plain = { seed: firstSeed, nodes: 6 };
    const story = (world: MeshWorld): readonly string[] => {
      joined(world);
      world.kill(1);
      world.run(20_000);
      return world.trace;
    };
    const sealed = { ...plain, keys: [new Uint8Array(32).fill(1)], compresses: true };
    const kinds = (trace: readonly string[]): readonly string[] =>
      trace.map((line) => line.split(" ").slice(1, 4).join(" ")).toSorted();
    deepEqual(kinds(told(sealed, story)), kinds(told(plain, story)));
  });

  test(`SIM_SEED=${firstSeed}: an hour at 20 % loss: suspicions, but no node is declared dead`, (t) => {
    const nodes = Number(process.env["MESH_SIM_NODES"] ?? 8);
    const world = new MeshWorld({ seed: firstSeed, nodes, lossShare: 0.2, times: profiles.lan });
    joined(world);
    world.run(3_600_000);
    ok(world.runUntil(() => world.isTrueForAll(), 60_000) !== undefined);
    const probes = ["probes", "probesFailed", "probesByStream"] as const;
    const fates = ["suspicions", "suspicionsFalse", "refutations", "deaths"] as const;
    const facts = [...probes, ...fates].map((what) => `${what}=${world.count(what)}`).join(" ");
    const [suspicions, disproved] = [world.count("suspicions"), world.count("suspicionsFalse")];
    const refutations = world.count("refutations");
    t.diagnostic(`${nodes} nodes, one hour, 20 % loss: ${facts} packets=${world.packets}`);
    deepEqual([world.count("deaths"), world.trace.filter((line) => / fail /.test(line))], [0, []], facts);
    ok(suspicions > 0, facts);
    equal(disproved, suspicions, "all are alive, so each suspicion was false and is over");
    // One refutation answers for an incarnation, which each of the others suspects at most once.
    ok(refutations > 0 && refutations <= disproved && disproved <= refutations * (nodes - 1), facts);
  });
});

/** Kills, restarts, stops and partitions for five minutes; at its end everything runs and the network is whole. */
function storm(world: MeshWorld, random: Random): void {
  const last = world.nodes.length - 1;
  for (let round = 0; round < 15; round += 1) {
    const i = random.between(1, last);
    const { state } = world.node(i);
    if (state === "killed") world.restart(i, random.pick(world.upNodes()));
    else if (state === "stopped") world.resume(i);
    else if (random.chance(0.4)) world.kill(i);
    else if (random.chance(0.5)) world.stop(i);
    else {
      const cut = random.between(1, last);
      world.partition((other) => (other < cut ? 1 : 2));
      world.run(random.between(1_000, 60_000));
      world.partition(undefined);
    }
    world.run(random.between(500, 40_000));
  }
  for (const [i, { state }] of world.nodes.entries())
    if (state === "killed") world.restart(i, 0);
    else if (state === "stopped") world.resume(i);
}

function incarnationOf(world: MeshWorld, i: number): number {
  const { name, machine } = world.node(i);
  return must(
    machine.members(world.nowMs).find((member) => member.name === name),
    name,
  ).incarnation;
}

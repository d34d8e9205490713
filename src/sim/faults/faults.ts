/** The faults, as a table: how often each one happens, and what it does until it ends. */
import type { Random } from "#base/random.ts";
import type { Cluster } from "#sim/world/cluster.ts";
import type { FaultKind } from "./fault-kinds.ts";
import type { Machine } from "#sim/world/machine.ts";

type InjectFault = (cluster: Cluster, random: Random, force: number) => ActiveFault | undefined;
/** How long it lasts and how it ends; undefined for a fault that needs no end. */
type ActiveFault = { readonly forMs: number; readonly end: () => void };
type FaultSpec = {
  /** The mean time between two occurrences at full intensity. */
  readonly everyMs: number;
  readonly strike: InjectFault;
};

const seconds = (random: Random, low: number, high: number): number => (low + random.fraction() * (high - low)) * 1_000;

const crash = (machine: Machine | undefined, random: Random, boot: () => void): ActiveFault | undefined => {
  if (!machine?.up) return undefined;
  machine.crash();
  return { forMs: seconds(random, 0.05, 15), end: boot };
};

const stop = (machine: Machine | undefined, random: Random): ActiveFault | undefined => {
  if (machine?.life?.state !== "up") return undefined;
  machine.stop();
  return { forMs: seconds(random, 0.1, random.chance(0.3) ? 40 : 8), end: () => machine.resume() };
};

const sleep = (machine: Machine | undefined, random: Random): ActiveFault | undefined => {
  if (machine?.life?.state !== "up") return undefined;
  machine.sleep();
  return { forMs: seconds(random, 0.5, random.chance(0.3) ? 40 : 10), end: () => machine.resume() };
};

/** Raises one of the probabilities for a while. */
const raise = <C extends object, K extends keyof C>(conditions: C, name: K, to: C[K], forMs: number): ActiveFault => {
  const before = conditions[name];
  conditions[name] = to;
  return { forMs, end: () => (conditions[name] = before) };
};

export const faults: Readonly<Record<FaultKind, FaultSpec>> = {
  "node-crash": {
    everyMs: 4_000,
    strike(cluster, random) {
      const node = random.pick(cluster.nodes);
      return crash(node.machine, random, () => node.boot());
    },
  },
  "node-stop": { everyMs: 4_000, strike: ({ nodes }, random) => stop(random.pick(nodes).machine, random) },
  "node-sleep": { everyMs: 4_000, strike: ({ nodes }, random) => sleep(random.pick(nodes).machine, random) },
  "node-leaves": {
    everyMs: 5_000,
    strike(_cluster, random) {
      const node = random.pick(_cluster.nodes);
      if (node.machine.life?.state !== "up") return undefined;
      node.leave();
      return { forMs: seconds(random, 1, 10), end: () => node.boot() };
    },
  },
  "executor-crash": {
    everyMs: 4_000,
    strike(cluster, random) {
      const executor = random.pick(cluster.executors);
      return crash(executor.machine, random, () => executor.boot());
    },
  },
  "executor-stop": { everyMs: 4_000, strike: ({ executors }, random) => stop(random.pick(executors).machine, random) },
  "executor-sleep": {
    everyMs: 4_000,
    strike: ({ executors }, random) => sleep(random.pick(executors).machine, random),
  },
  "wall-clock-jump": {
    everyMs: 3_000,
    strike({ nodes, executors }, random) {
      random
        .pick([...nodes, ...executors])
        .machine.setWallClock(random.pick([-86_400_000, -3_600_000, -5_000, 5_000, 3_600_000]));
      return undefined;
    },
  },
  "store-clock-jump": {
    everyMs: 7_500,
    strike(cluster, random) {
      cluster.jumpStoreClock(random.pick([-3_600_000, -20_000, -1_000, 1_000, 20_000, 3_600_000]));
      return undefined;
    },
  },
  partition: {
    everyMs: 5_000,
    strike({ network, world }, random) {
      const names = [...world.machines.keys()];
      const left = names.filter(() => random.chance(0.5));
      const right = names.filter((name) => !left.includes(name));
      for (const a of left)
        for (const b of right) {
          network.cut(a, b);
          network.cut(b, a);
        }
      return { forMs: seconds(random, 0.5, 20), end: () => network.heal() };
    },
  },
  "one-way-cut": {
    everyMs: 3_000,
    strike({ network, world }, random) {
      const names = [...world.machines.keys()];
      network.cut(random.pick(names), random.pick(names));
      return { forMs: seconds(random, 0.5, 20), end: () => network.heal() };
    },
  },
  "lossy-network": {
    everyMs: 3_000,
    strike: ({ network }, random, force) =>
      raise(network.conditions, "lossChance", force * 0.4, seconds(random, 1, 10)),
  },
  "doubling-network": {
    everyMs: 2_000,
    strike: ({ network }, random, force) =>
      raise(network.conditions, "duplicateChance", force * 0.5, seconds(random, 2, 10)),
  },
  "slow-network": {
    everyMs: 2_500,
    strike({ network }, random, force) {
      network.conditions.spikeMs = seconds(random, 0.1, 8);
      return raise(network.conditions, "spikeChance", force * 0.3, seconds(random, 1, 10));
    },
  },
  "database-refuses": {
    everyMs: 3_000,
    strike: ({ database }, random, force) =>
      raise(database.conditions, "unavailableChance", force * 0.4, seconds(random, 0.5, 8)),
  },
  "database-loses": {
    everyMs: 3_000,
    strike: ({ database }, random, force) =>
      raise(database.conditions, "lostChance", force * 0.2, seconds(random, 0.5, 8)),
  },
  "database-unheard": {
    everyMs: 2_500,
    strike: ({ database }, random, force) =>
      raise(database.conditions, "unheardChance", force * 0.3, seconds(random, 0.5, 8)),
  },
  "database-late": {
    everyMs: 2_500,
    strike({ database }, random, force) {
      database.conditions.lateMs = seconds(random, 0.5, 30);
      return raise(database.conditions, "lateChance", force * 0.2, seconds(random, 0.5, 8));
    },
  },
  "database-slow": {
    everyMs: 3_000,
    strike({ database }, random, force) {
      database.conditions.spikeMs = seconds(random, 0.1, 4);
      return raise(database.conditions, "spikeChance", force * 0.3, seconds(random, 0.5, 8));
    },
  },
  "database-outage": {
    everyMs: 12_500,
    strike: ({ database }, random) =>
      raise(database.conditions, "outage", random.pick(["down", "mute"] as const), seconds(random, 1, 40)),
  },
  "database-cut-off": {
    everyMs: 4_000,
    strike({ database, nodes }, random) {
      const { name } = random.pick(nodes).machine;
      database.cutOff.add(name);
      return { forMs: seconds(random, 0.5, 25), end: () => database.cutOff.delete(name) };
    },
  },
  /** It keeps what it owns until its lease ends by its own clock, and hears of nothing; the store gives it away now. */
  "owner-unaware": {
    everyMs: 4_000,
    strike(cluster, random) {
      const { database, nodes, profile } = cluster;
      if (nodes.length < 2) return undefined;
      const { name } = random.pick(nodes).machine;
      database.cutOff.add(name);
      cluster.jumpStoreClock(2 * profile.ownerLeaseMs);
      return { forMs: seconds(random, 1, 10), end: () => database.cutOff.delete(name) };
    },
  },
  evictions: {
    everyMs: 1_000,
    strike(cluster) {
      cluster.evict();
      return undefined;
    },
  },
  "blobs-slow": {
    everyMs: 4_000,
    strike(cluster, random) {
      cluster.blobsSlowMs = seconds(random, 0.2, 4);
      return { forMs: seconds(random, 1, 10), end: () => (cluster.blobsSlowMs = 0) };
    },
  },
  "board-refuses": {
    everyMs: 3_000,
    strike: ({ board }, random, force) =>
      raise(board.conditions, "refuseChance", 0.5 + force / 2, seconds(random, 1, 20)),
  },
  "board-loses": {
    everyMs: 3_000,
    strike: ({ board }, random, force) => raise(board.conditions, "loseChance", force * 0.7, seconds(random, 1, 10)),
  },
  "board-slow": {
    everyMs: 3_000,
    strike: ({ board }, random) => raise(board.conditions, "slowMs", seconds(random, 0.2, 6), seconds(random, 1, 15)),
  },
};

/** Injects the profile's faults until the storm is over; then ends every one of them. */
export function unleash(cluster: Cluster, kinds: ReadonlyMap<FaultKind, number>, untilMs: number): () => void {
  const { world, injected } = cluster;
  const ends = new Set<() => void>();
  for (const [kind, force] of kinds) {
    const random = world.random.fork(kind);
    const { everyMs, strike } = faults[kind];
    const next = (): void => {
      const waitMs = (everyMs / force) * (0.2 + random.fraction() * 1.6);
      if (world.nowMs + waitMs < untilMs) world.after(waitMs, undefined, hit);
    };
    const hit = (): void => {
      const passing = strike(cluster, random, force);
      injected(kind);
      world.say(`fault ${kind}${passing ? ` for ${passing.forMs.toFixed(0)}ms` : ""}`);
      if (passing) {
        const end = () => void (ends.delete(end) && passing.end());
        ends.add(end);
        world.after(passing.forMs, undefined, end);
      }
      next();
    };
    next();
  }
  return () => [...ends].forEach((end) => end());
}

/**
 * The kind of world that a seed makes: its size, its workload and its faults. Swarm style: each seed takes only some of
 * everything, so that rare combinations happen and common faults do not hide the others.
 */
import type { Random } from "#base/random.ts";
import type { Limits } from "#kernel/model/limits.ts";
import type { ClientAction } from "./actors/client.ts";
import { clientActionKinds } from "./actors/client.ts";
import { faultKinds, type FaultKind } from "./faults/fault-kinds.ts";
import { misbehaviours, type Misbehaviour } from "./actors/misbehaviour.ts";
import { drawTightLimits } from "./faults/tight-limits.ts";
import { shapes, type ShapeName } from "./actors/workloads.ts";
import { deskDefaults, type DeskSettings } from "#feed/desk.ts";
import { hubDefaults, type HubSettings } from "#feed/hub.ts";
import { replayedDefaults, type ReplayedSettings } from "#feed/replayed.ts";
import type { CatchUp } from "#schedules/due.ts";
import { workerDefaults } from "#worker/worker-options.ts";

export type Profile = {
  readonly shards: number;
  readonly nodes: number;
  readonly executors: number;
  /** How many of the executors are simulated, and may misbehave; the others are real workers. */
  readonly rogues: number;
  readonly slots: number;
  readonly clients: number;
  readonly tenants: readonly TenantProfile[];
  /** Of all clients together. */
  readonly jobs: number;
  /** How long faults go on. */
  readonly stormMs: number;
  /** Of claims. */
  readonly leaseMs: number;
  /** Of shards. */
  readonly ownerLeaseMs: number;
  readonly reserveWaitMs: number;
  readonly shapes: readonly ShapeName[];
  /** Faults with their intensity, from 0 to 1. */
  readonly faults: ReadonlyMap<FaultKind, number>;
  readonly clientActions: ReadonlyMap<ClientAction, number>;
  readonly misbehaviour: ReadonlyMap<Misbehaviour, number>;
  /** Limits that differ from the defaults: so low that they are reached. */
  readonly limits: Partial<Limits>;
  /** How long a silent executor is remembered. */
  readonly executorFadeMs: number;
  readonly latencyMs: number;
  readonly clockDrift: number;
  /** The number of keys that a shard keeps in memory; beyond that it asks the journal. */
  readonly keysInMemoryMax: number;
  /** Bytes of log after which a snapshot is taken. */
  readonly snapshotBytes: number;
  /** How long the blobs that a commit names are pinned. */
  readonly pinMs: number;
  /** How long a job stays in memory when it has ended and its history is written. */
  readonly endedKeepMs: number;
  /** How long after its job's end the shard tries to publish a result. */
  readonly publishMsMax: number;
  /** Up to how many shards real workers hold a request at each; with more, nodes tell them which have work. */
  readonly heldShardsMax: number;
  readonly feed: FeedProfile;
  readonly schedules: readonly ScheduleProfile[];
};

/** Of every minute, and so many of them are due when the world begins. */
export type ScheduleProfile = { readonly tenant: string; readonly catchUp: CatchUp; readonly dueBefore: number };

/** Readers of the event feed, and how little of it nodes keep. */
export type FeedProfile = {
  readonly readers: readonly { readonly tenant: string | undefined; readonly from: "now" | "oldest" }[];
  readonly desk: DeskSettings;
  readonly hub: Partial<HubSettings>;
  readonly replayed: Partial<ReplayedSettings>;
};

export type TenantProfile = {
  readonly name: string;
  readonly weight: number;
  readonly runningMax: number;
  readonly queuedMax: number;
};

type Size = "speck" | "tiny" | "small" | "large";

const sizes = {
  speck: { shards: [1, 2], nodes: [1, 2], executors: [1, 2], jobs: [1, 4], stormMs: [1_500, 6_000] },
  tiny: { shards: [1, 2], nodes: [1, 3], executors: [1, 3], jobs: [2, 10], stormMs: [3_000, 15_000] },
  small: { shards: [1, 6], nodes: [2, 4], executors: [2, 5], jobs: [5, 25], stormMs: [8_000, 30_000] },
  large: { shards: [8, 64], nodes: [3, 20], executors: [4, 12], jobs: [15, 40], stormMs: [10_000, 30_000] },
} as const satisfies Record<Size, Record<string, readonly [number, number]>>;

/** Mostly small ones: many small worlds find more than a few large ones in the same time. */
function drawSize(random: Random): Size {
  if (random.chance(0.005)) return "large";
  if (random.chance(0.12)) return "small";
  return random.chance(0.4) ? "tiny" : "speck";
}

/** Names of faults, client actions, misbehaviours and shapes that a hunt should see more of; or "quota". */
export type Focus = readonly string[];

export function drawProfile(random: Random, focus: Focus = []): Profile {
  const size = drawSize(random);
  const range = sizes[size];
  const draw = ([low, high]: readonly [number, number]) => random.between(low, high);
  const leaseMs = size === "speck" ? random.pick([2_000, 3_000]) : random.pick([3_000, 6_000, 12_000]);
  const shards = draw(range.shards);
  const executors = draw(range.executors);
  const tenants = Array.from({ length: random.between(1, 3) }, (_, i) =>
    drawTenant(random, i, focus.includes("quota") ? 1 : shards <= 6 ? 0.25 : 0),
  );
  const limits = random.chance(focus.includes("tight") ? 1 : 0.2)
    ? drawTightLimits(random, { executors, tenants: tenants.length })
    : {};
  return {
    shards,
    nodes: draw(range.nodes),
    executors,
    rogues: random.below(executors),
    slots: random.between(1, 4),
    clients: random.between(1, 2),
    tenants,
    jobs: draw(range.jobs),
    stormMs: draw(range.stormMs),
    leaseMs,
    ownerLeaseMs: size === "speck" ? 3_000 : random.pick([3_000, 6_000]),
    reserveWaitMs: shards > 4 ? 0 : random.pick([0, 1_000, 5_000]),
    shapes: wanted([...some(random, common, 0.4), ...rare.filter(() => random.chance(0.06))], shapeNames, focus),
    faults: forced(intensities(random, faultKinds, random.pick([0, 0.15, 0.15, 0.35])), faultKinds, focus, 1),
    clientActions: forced(
      new Map(some(random, clientActionKinds, 0.5).map((whim) => [whim, 0.1 + random.fraction() * 0.4])),
      clientActionKinds,
      focus,
      0.8,
    ),
    misbehaviour: forced(
      new Map(some(random, misbehaviours, 0.3).map((kind) => [kind, random.fraction() * 0.25])),
      misbehaviours,
      focus,
      0.3,
    ),
    limits,
    executorFadeMs: random.pick([5_000, 60_000]),
    latencyMs: random.pick([0.5, 2, 20]),
    clockDrift: random.chance(0.5) ? 0 : random.fraction() * 0.001,
    keysInMemoryMax: random.chance(0.2) ? 2 : 1_000_000,
    snapshotBytes: random.pick([2_000, 20_000, 8_000_000]),
    pinMs: random.pick([1_000, 60_000, 3_600_000]),
    // Where many follow-up steps are left, a job may be forgotten before all of them are done.
    endedKeepMs: random.chance(limits.settleStepsMax === undefined ? 0.1 : 0.6) ? 0 : 3_000,
    publishMsMax: random.pick([500, 3_000, 70_000, 3_600_000]),
    heldShardsMax: random.pick([0, workerDefaults.heldShardsMax]),
    feed: drawFeed(random, tenants, focus.includes("readers")),
    // A key that is forgotten early means another job.
    schedules: limits.keyRetentionMs === undefined ? drawSchedules(random, tenants, focus.includes("schedules")) : [],
  };
}

function drawSchedules(
  random: Random,
  tenants: readonly TenantProfile[],
  isWanted: boolean,
): readonly ScheduleProfile[] {
  const count = isWanted ? random.between(1, 2) : random.chance(0.1) ? 1 : 0;
  return Array.from({ length: count }, () => ({
    tenant: random.pick(tenants).name,
    catchUp: random.pick(["all", "all", "once", "skip"] as const),
    dueBefore: random.between(0, 12),
  }));
}

function drawFeed(random: Random, tenants: readonly TenantProfile[], isWanted: boolean): FeedProfile {
  const count = isWanted ? random.between(1, 3) : random.chance(0.2) ? random.between(1, 2) : 0;
  return {
    readers: Array.from({ length: count }, () => ({
      tenant: random.chance(0.3) ? random.pick(tenants).name : undefined,
      from: random.pick(["now", "oldest"] as const),
    })),
    desk: {
      ringBytesMax: random.pick([1, 3_000, deskDefaults.ringBytesMax]),
      answerItemsMax: random.pick([1, 20, deskDefaults.answerItemsMax]),
      // The least is less than most batches take.
      answerBytesMax: random.pick([1_000, 20_000, deskDefaults.answerBytesMax]),
      lingerMs: random.pick([1_000, deskDefaults.lingerMs]),
    },
    // The least that a hub keeps is about a hundred items of each shard.
    hub: { bytesMax: random.pick([1, hubDefaults.bytesMax]), lingerMs: random.pick([500, hubDefaults.lingerMs]) },
    replayed: {
      statesMax: random.pick([1, replayedDefaults.statesMax]),
      // Without it every slice begins at the first batch of the log.
      keepMs: random.pick([2_000, replayedDefaults.keepMs]),
      sliceItemsMax: random.pick([5, 50, replayedDefaults.sliceItemsMax]),
    },
  };
}

const shapeNames = Object.keys(shapes) as ShapeName[];
/** These take minutes. */
const rare: readonly ShapeName[] = ["far"];
const common = shapeNames.filter((name) => !rare.includes(name));

function forced<K extends string>(
  drawn: ReadonlyMap<K, number>,
  kinds: readonly K[],
  focus: Focus,
  force: number,
): ReadonlyMap<K, number> {
  const more = kinds.filter((kind) => focus.includes(kind)).map((kind) => [kind, force] as const);
  return new Map([...drawn, ...more]);
}

function wanted<K extends string>(drawn: readonly K[], kinds: readonly K[], focus: Focus): readonly K[] {
  const chosen = kinds.filter((kind) => focus.includes(kind));
  return chosen.length > 0 ? chosen : drawn;
}

const drawTenant = (random: Random, index: number, quotaChance: number): TenantProfile => ({
  name: `tenant-${index}`,
  weight: random.pick([1, 1, 3]),
  // One slot for many shards is too little to finish within a run.
  runningMax: random.chance(quotaChance) ? random.between(1, 4) : 0,
  queuedMax: random.chance(0.2) ? random.between(3, 20) : 0,
});

/** At least one of them. */
function some<T>(random: Random, all: readonly T[], share: number): readonly T[] {
  const chosen = all.filter(() => random.chance(share));
  return chosen.length > 0 ? chosen : [random.pick(all)];
}

const intensities = (random: Random, kinds: readonly FaultKind[], share: number): ReadonlyMap<FaultKind, number> =>
  new Map(kinds.filter(() => random.chance(share)).map((kind) => [kind, 0.1 + random.fraction() * 0.9]));

/** One simulated cluster: a database, a blob store, a network, nodes, executors and clients, as the profile says. */
import { hash32, type Random } from "#base/random.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import type { Command } from "#kernel/model/command.ts";
import { defaultLimits, type Limits } from "#kernel/model/limits.ts";
import type { Answers } from "#kernel/read/query.ts";
import { createRouter, type Router } from "#shard/router/router.ts";
import { Board, calmBoard } from "#sim/actors/board.ts";
import { Client } from "#sim/actors/client.ts";
import { count, Court, newTally, type Tally } from "#sim/check/court.ts";
import { checkers } from "#sim/check/checkers.ts";
import { feedIsDurable, FeedNotes } from "#sim/check/feed.ts";
import { DeskCalls } from "./desks.ts";
import { Database, type DatabaseConditions } from "./database.ts";
import { Executor } from "#sim/actors/executor.ts";
import type { FaultKind } from "#sim/faults/fault-kinds.ts";
import type { Life, Machine } from "./machine.ts";
import type { Misbehaviour } from "#sim/actors/misbehaviour.ts";
import { Network, type NetworkConditions } from "./network.ts";
import { startNode, type RunningNode } from "./node.ts";
import { Pins } from "./pins.ts";
import type { Profile } from "#sim/profile.ts";
import { startReader } from "#sim/actors/reader.ts";
import { Runs } from "#sim/actors/runs.ts";
import { startWorker } from "#sim/actors/worker.ts";
import { makeSchedules, pauseSchedules, schedulesOf } from "#sim/actors/schedules.ts";
import { workSources } from "#sim/actors/work-sources.ts";
import type { World } from "./world.ts";

export type SimNode = {
  readonly machine: Machine;
  /** The process that runs there now. */
  readonly running: () => RunningNode | undefined;
  boot(): void;
  /** Hands its shards over and stops. */
  leave(): void;
};

export type SimExecutor = { readonly machine: Machine; boot(): void };

/** Faults that do not affect nodes, network and database. */
const harmless = new Set<FaultKind>([
  ...(["executor-crash", "executor-stop", "wall-clock-jump", "evictions", "blobs-slow"] as const),
  ...(["board-refuses", "board-loses", "board-slow"] as const),
]);

const labels = ["gpu=yes", "os=linux"];

/** How long schedules go on after the storm: they have caught up by then. */
const scheduledMs = 5 * 60_000;

export class Cluster {
  readonly world: World;
  readonly profile: Profile;
  readonly network: Network;
  readonly desks: DeskCalls;
  readonly database: Database;
  readonly court: Court;
  readonly tally: Tally;
  readonly pins: Pins;
  readonly board: Board;
  readonly nodes: readonly SimNode[];
  readonly executors: readonly SimExecutor[];
  readonly clients: readonly Client[];
  /** What readers of the event feed were given. */
  readonly readings: readonly FeedNotes[];
  readonly limits: Limits;
  /** In every third world nearly all specs are long ones, which are kept in the store. */
  readonly inlineLengthMax: number;
  healed = false;
  healedAtMs = 0;
  blobsSlowMs = 0;
  readonly #random: Random;
  readonly #runs = new Runs();
  readonly #misbehaviour: Map<Misbehaviour, number>;
  readonly #waited = new Set<string>();

  constructor(world: World, profile: Profile) {
    this.world = world;
    this.profile = profile;
    this.#random = world.random.fork("cluster");
    this.tally = newTally();
    this.pins = new Pins(world);
    this.#misbehaviour = new Map(profile.misbehaviour);
    this.limits = {
      ...defaultLimits,
      sleepMs: 1_500,
      // Small arrays must have tasks that are not queued yet.
      arrayAheadMax: 2,
      keysInMemoryMax: profile.keysInMemoryMax,
      executorDrainMs: 20_000,
      executorFadeMs: profile.executorFadeMs,
      publishMsMax: profile.publishMsMax,
      ...profile.limits,
    };
    const { ownerLeaseMs, snapshotBytes, latencyMs } = profile;
    this.inlineLengthMax = hash32(`texts ${ownerLeaseMs} ${snapshotBytes} ${latencyMs}`) % 3 === 0 ? 40 : 8_192;
    this.court = new Court(world, profile.shards, { pins: this.pins, runs: this.#runs, tally: this.tally, checkers });
    this.court.calm = profile.faults.size === 0;
    this.court.connected = [...profile.faults.keys()].every((kind) => harmless.has(kind));
    this.board = new Board(world, world.random.fork("board"), this.court.published);
    this.court.isKnown = (shard, task, generation) => this.board.knows(shard, task, generation);
    this.network = new Network(world, world.random.fork("network"), calmNetwork(profile), this.court.network);
    this.desks = new DeskCalls(this.network, (_by, page) => feedIsDurable(this.court, page));
    const store = this.#machine("database");
    this.database = new Database(store, world.random.fork("database"), calmDatabase(profile), this.court.database);
    const blobs = this.#machine("blobs").boot();
    this.pins.store = createMemoryBlobs({ clock: blobs.clock, sizeBytesMax: 1 << 30 });
    this.nodes = Array.from({ length: profile.nodes }, (_, i) => this.#node(`node-${i}`));
    this.executors = Array.from({ length: profile.executors }, (_, i) => this.#executor(i));
    this.clients = Array.from({ length: profile.clients }, (_, i) => this.#client(`client-${i}`));
    this.readings = profile.feed.readers.map((habits, i) => this.#reader(`reader-${i}`, habits));
  }

  start(): void {
    for (const node of this.nodes) node.boot();
    for (const executor of this.executors) executor.boot();
    const operator = this.#machine("operator").boot();
    void this.#tenants(operator);
    void this.#lookAfter(operator);
    if (this.profile.schedules.length > 0) void this.#schedule(operator);
    for (const client of this.clients) client.start();
  }

  readonly injected = (kind: string): void => count(this.tally.faults, kind);

  jumpStoreClock(byMs: number): void {
    this.court.storeJumpedAtMs = this.world.nowMs;
    this.database.machine.setWallClock(byMs);
  }

  /** The blob store's latency; a fault may raise it. */
  blobLatencyMs(): number {
    return this.profile.latencyMs + this.#random.fraction() * this.blobsSlowMs;
  }

  evict(): void {
    for (const digest of this.pins.known) if (this.pins.evict(digest)) this.injected("blob-evicted");
  }

  /** Ends all faults. */
  heal(): void {
    this.world.say("healed");
    this.healed = true;
    this.healedAtMs = this.world.nowMs;
    this.#misbehaviour.clear();
    this.network.heal();
    Object.assign(this.network.conditions, calmNetwork(this.profile));
    Object.assign(this.database.conditions, calmDatabase(this.profile));
    this.database.cutOff.clear();
    this.blobsSlowMs = 0;
    Object.assign(this.board.conditions, calmBoard);
    for (const each of [...this.nodes, ...this.executors]) {
      each.machine.resume();
      if (!each.machine.up) each.boot();
    }
  }

  #machine(name: string): Machine {
    const { clockDrift } = this.profile;
    const off = () => (this.#random.fraction() * 2 - 1) * clockDrift;
    const wallOffsetMs = clockDrift === 0 ? 0 : Math.round(off() * 60_000_000);
    return this.world.machine(name, {
      rate: 1 + off() / 2,
      bootMonotonicMs: this.#random.below(1_000_000),
      wallOffsetMs,
    });
  }

  #node(name: string): SimNode {
    const machine = this.#machine(name);
    let running: RunningNode | undefined;
    const boot = (): void => {
      const life = machine.boot();
      running = undefined;
      void startNode(this, life).then((node) => {
        if (machine.life === life) running = node;
      });
    };
    const leave = (): void => {
      const life = machine.life;
      void running?.stop().then(() => {
        if (machine.life === life) machine.crash();
      });
    };
    return { machine, running: () => (machine.up ? running : undefined), boot, leave };
  }

  #executor(index: number): SimExecutor {
    const name = `executor-${index}`;
    const isRogue = index >= this.profile.executors - this.profile.rogues;
    const machine = this.#machine(name);
    const random = this.#random.fork(name);
    // One of them offers all labels, so that all work can be done.
    const offers = index === 0 ? labels : labels.filter(() => random.chance(0.5));
    const boot = (): void => {
      const life = machine.boot();
      const ports = {
        life,
        router: this.router(life),
        otherRouter: this.router(life),
        sources: workSources({ life, journal: this.database.connect(life), desks: this.desks }),
        blobs: this.pins.connect(life, () => this.blobLatencyMs()),
        random,
        runs: this.#runs,
        waited: this.#waited,
        injected: this.injected,
      };
      const habits = {
        name,
        offers: [...offers, "plan=sim-1"],
        slots: this.profile.slots,
        shards: this.profile.shards,
        waitMs: this.profile.reserveWaitMs,
        heldShardsMax: this.profile.heldShardsMax,
        misbehaviour: this.#misbehaviour,
      };
      if (isRogue) new Executor(ports, habits).start();
      else startWorker(ports, habits);
    };
    return { machine, boot };
  }

  #client(name: string): Client {
    const life = this.#machine(name).boot();
    const random = this.#random.fork(name);
    const { profile } = this;
    const jobs = Math.ceil(profile.jobs / profile.clients);
    return new Client(
      {
        life,
        router: this.router(life),
        otherRouter: this.router(life),
        freshRouter: () => this.router(life),
        random,
        injected: this.injected,
        healed: () => this.healed,
      },
      {
        name,
        shards: profile.shards,
        tenants: profile.tenants.map(({ name: tenant }) => tenant),
        shapes: profile.shapes,
        jobs,
        everyMs: profile.stormMs / jobs,
        leaseMs: profile.leaseMs,
        labels,
        executors: Array.from({ length: profile.executors }, (_, i) => `executor-${i}`),
        clientActions: profile.clientActions,
      },
    );
  }

  #reader(name: string, { tenant, from }: Profile["feed"]["readers"][number]): FeedNotes {
    const life = this.#machine(name).boot();
    const notes = new FeedNotes(this.court, name, tenant);
    const random = this.#random.fork(name);
    const nodes = this.nodes.map(({ machine }) => machine.name);
    startReader({ life, random, desks: this.desks, notes, injected: this.injected }, { nodes, tenant, from });
    return notes;
  }

  /** Executors and clients find owners in the partition map, and send them requests over the network. */
  router(life: Life): Router {
    const journal = this.database.connect(life);
    return createRouter({
      ownerships: () => journal.ownerships(),
      transport: this.network.transport(life),
      clock: life.clock,
      random: this.#random.fork(`router ${life.name}`),
    });
  }

  /** Sends every tenant's settings to every shard, as an operator's program would. */
  async #tenants(operator: Life): Promise<void> {
    const tell = this.#teller(operator);
    for (const [index, tenant] of this.profile.tenants.entries())
      for (let shard = 0; shard < this.profile.shards; shard += 1) {
        const { name, ...facts } = tenant;
        void tell(shard, { kind: "set-tenant", tenant: name, ...facts, home: index % this.profile.shards });
      }
  }

  async #schedule(operator: Life): Promise<void> {
    const { schedules: wanted } = this.profile;
    const schedules = schedulesOf(this.database.connect(operator), operator);
    await makeSchedules(operator, schedules, wanted);
    while (!this.healed || this.world.nowMs < this.healedAtMs + scheduledMs) await operator.clock.sleep(5_000);
    await pauseSchedules(operator, schedules, wanted);
  }

  /** After the storm this cleans up what clients have lost track of. */
  async #lookAfter(operator: Life): Promise<void> {
    const tell = this.#teller(operator);
    const router = this.router(operator);
    for (;;) {
      await operator.clock.sleep(5_000);
      if (!this.healed) continue;
      for (const { shard, jobs } of this.court.models) {
        for (const job of jobs.values())
          for (const [stage, { planning }] of job.stages.entries())
            if (planning?.standing === "waiting") {
              const signal = { id: "operator", name: "approve", payload: "" };
              await tell(shard, { kind: "signal", job: job.no, stage, signal });
            }
        for (const executor of await drainedIn(router, shard)) await tell(shard, { kind: "resume", executor });
      }
    }
  }

  #teller(life: Life): (shard: number, command: Command) => Promise<void> {
    const router = this.router(life);
    return async (shard, command) => {
      for (let tries = 0; tries < 100; tries += 1)
        try {
          await router.request({ kind: "command", shard, command }, { deadlineMs: 15_000 });
          return;
        } catch {
          await life.clock.sleep(1_000);
        }
    };
  }
}

/** Executors that a late or repeated command drained again after they were resumed. */
async function drainedIn(router: Router, shard: number): Promise<readonly string[]> {
  const reply = router.request({ kind: "query", shard, query: { kind: "executors" } }, { deadlineMs: 15_000 });
  const got = await reply.catch(() => undefined);
  if (got?.kind !== "answer") return [];
  const { executors } = got.answer as Answers["executors"];
  return executors.filter(({ drained }) => drained === "maintenance").map(({ executor }) => executor);
}

const calmNetwork = ({ latencyMs }: Profile): NetworkConditions => ({
  latencyMs,
  spikeMs: 0,
  spikeChance: 0,
  lossChance: 0,
  duplicateChance: 0,
  patienceMs: 15_000,
});

const calmDatabase = ({ latencyMs }: Profile): DatabaseConditions => ({
  latencyMs,
  spikeMs: 0,
  spikeChance: 0,
  unavailableChance: 0,
  lostChance: 0,
  unheardChance: 0,
  lateChance: 0,
  lateMs: 0,
  patienceMs: 3_000,
  outage: "none",
});

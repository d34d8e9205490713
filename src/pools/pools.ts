/**
 * All pools of a node's configuration: keeps those that it owns. Ownership saves work and decides nothing: two nodes
 * that both keep a pool for a moment do no harm (PO1, KP2).
 */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import { openCommands } from "./commands/command-machines.ts";
import { demandOf, type Demand } from "./demand.ts";
import { openPods } from "./kubernetes/pods.ts";
import type { MachineMaker } from "./machine.ts";
import type { PoolSettings } from "./pool-config.ts";
import { PoolKeeper, poolStanding, type KeeperPorts, type Standing } from "./pool-keeper.ts";
import type { Queue } from "./queue.ts";
import { isNews, standingOf, standingOwner, type PoolStanding, type Standings } from "./standing.ts";
import { desiredOf } from "./step.ts";
import type { Records } from "#records/watch.ts";

export type PoolsPorts = Pick<KeeperPorts, "register" | "unregister" | "lost"> & {
  readonly pools: readonly PoolSettings[];
  readonly node: string;
  readonly standings: Standings;
  readonly records: Records;
  readonly clock: Clock;
  readonly random: Random;
  /** Undefined: not known now. */
  readonly queue: (signal: AbortSignal) => Promise<Queue | undefined>;
  readonly owns: (pool: string) => boolean;
  /** How machines of a pool that does not say so reach a node. */
  readonly server: string | undefined;
  readonly log: (line: string) => void;
};

const everyMs = 1_000;
/** Looks are never closer: a burst of events is one look. */
const restMs = 50;

type Kept = { readonly keeper: PoolKeeper | undefined; readonly maker: MachineMaker | undefined };

export class Pools implements AsyncDisposable {
  readonly #ports: PoolsPorts;
  readonly #ending = new AbortController();
  readonly #kept = new Map<string, Kept>();
  readonly #standings = new Map<string, PoolStanding>();
  #done: Promise<void> | undefined;
  #wake: () => void = () => {};
  #isPoked = false;

  constructor(ports: PoolsPorts) {
    this.#ports = ports;
    if (ports.pools.length > 0) this.#done = this.#run();
  }

  /** Of the pools that this node keeps, as of the last look. */
  get standings(): ReadonlyMap<string, PoolStanding> {
    return this.#standings;
  }

  /** Something changed: look soon. */
  poke = (): void => {
    this.#isPoked = true;
    this.#wake();
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error("the pools are closed"));
    this.#wake();
    await this.#done;
    for (const { maker } of this.#kept.values()) await maker?.[Symbol.asyncDispose]();
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#ports;
    const { signal } = this.#ending;
    while (!signal.aborted) {
      await this.#look().catch((error: unknown) => log(`look at pools: ${String(error)}`));
      await clock.sleep(restMs, signal).catch(() => undefined);
      if (!signal.aborted && !this.#isPoked) await this.#poked();
      this.#isPoked = false;
    }
  }

  #poked(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#ports.clock.after(everyMs, resolve);
    this.#wake = () => {
      cancel();
      resolve();
    };
    return promise;
  }

  async #look(): Promise<void> {
    const { pools, owns, queue: ask } = this.#ports;
    const own = pools.filter(({ name }) => owns(name));
    for (const [name, { maker }] of this.#kept)
      if (!own.some((pool) => pool.name === name)) {
        this.#kept.delete(name);
        this.#standings.delete(name);
        await maker?.[Symbol.asyncDispose]();
      }
    if (own.length === 0) return;
    const queue = await ask(this.#ending.signal);
    if (!queue) return;
    const demands = demandOf(pools, queue);
    await Promise.all(
      own.map(async (pool) => {
        const demand = demands.get(pool.name);
        if (demand) await this.#keep(pool, demand, queue);
      }),
    );
  }

  async #keep(pool: PoolSettings, demand: Demand, queue: Queue): Promise<void> {
    const { log } = this.#ports;
    try {
      const { keeper } = await this.#keptOf(pool);
      const standing = keeper ? await keeper.look(demand, queue) : externalStanding(pool, demand, queue);
      if (standing) await this.#write(pool, standing);
    } catch (error) {
      log(`pool ${pool.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async #keptOf(pool: PoolSettings): Promise<Kept> {
    const known = this.#kept.get(pool.name);
    if (known) return known;
    const { clock, register, unregister, lost, log } = this.#ports;
    const maker = await this.#makerOf(pool);
    const keeper = maker && new PoolKeeper({ pool, maker, clock, register, unregister, lost, log });
    const kept = { keeper, maker };
    this.#kept.set(pool.name, kept);
    return kept;
  }

  async #makerOf(pool: PoolSettings): Promise<MachineMaker | undefined> {
    if (pool.kind === "external") return undefined;
    const { clock, random, records, log, node } = this.#ports;
    const server = pool.server ?? this.#ports.server;
    if (server === undefined) throw new Error("set its server, or cluster.issuer: how its machines reach a node");
    const told = (line: string): void => log(`pool ${pool.name}: ${line}`);
    const common = { server, clock, changed: this.poke, log: told };
    if (pool.kind === "commands") return await openCommands({ ...common, settings: pool, records, node });
    return await openPods({ ...common, settings: pool, random: random.fork(pool.name) });
  }

  async #write({ name }: PoolSettings, standing: Standing): Promise<void> {
    const { standings, node, clock } = this.#ports;
    const now = standingOf(standing, { node, atMs: clock.wallMs() });
    const before = this.#standings.get(name);
    this.#standings.set(name, now);
    if (!isNews(before, now)) return;
    const { created } = await standings.create(standingOwner, name, now);
    if (!created) await standings.update(standingOwner, name, () => now);
  }
}

/** Others make its machines: they are known by their workers alone. */
function externalStanding(pool: PoolSettings, demand: Demand, { workers }: Queue): Standing {
  const own = workers.filter(({ name }) => name.startsWith(`pool.${pool.name}.`));
  const busy = own.filter(({ holds }) => holds.length > 0);
  const template = pool.templates[0]?.name ?? "";
  const machines = own.map(({ name, holds }) => ({
    name,
    template,
    phase: "up" as const,
    work: holds.length > 0 ? ("busy" as const) : ("idle" as const),
    ageMs: 0,
    task: holds[0]?.task,
  }));
  const asBusy = busy.map(({ name }, slot) => ({
    slot,
    id: name,
    name,
    template,
    worker: name,
    registration: "",
    phase: "up" as const,
    ageMs: 0,
    hasToken: true,
    work: "busy" as const,
    forMs: 0,
  }));
  return poolStanding(desiredOf({ pool, demand, machines: asBusy }), demand, machines);
}

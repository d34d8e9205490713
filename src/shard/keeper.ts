/**
 * Keeps the node's shards: takes those that nobody owns, renews their leases, steps down in time, and hands over.
 *
 * O1 A shard is served only after its state was replayed to a tail that was read after its epoch was acquired (K8).
 * O2 A lease is counted from before the request that won it was sent, on the monotonic clock; when it has run out the
 *    shard is given up, whatever the journal may say later.
 * O3 A shard that cannot be read back is not served and is reported; the others go on.
 */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Random } from "#base/random.ts";
import type { Epoch, Journal, NodeId, NodeRow, NodeSeen, Ownership } from "#journal/journal.ts";
import { OwnerLease, type Hosting, type LossReason } from "./host-shard.ts";
import type { StoreClock } from "./kernel-clock.ts";
import { Bell } from "./keeper-bell.ts";
import type { Replay } from "./keeper-replay.ts";
import type { KeeperSettings } from "./keeper-settings.ts";
import { moveTo, successors, toTake, type Standing } from "./keeper-share.ts";
import { Troubles, type Trouble } from "./keeper-trouble.ts";
import type { ShardRequest, ShardResponse } from "./protocol.ts";

export type KeeperPorts = {
  readonly node: NodeId;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly journal: Pick<
    Journal,
    "acquire" | "renew" | "release" | "tail" | "ownerships" | "announce" | "nodes" | "raiseFeatureLevel"
  >;
  readonly settings: KeeperSettings;
  readonly random: Random;
  /** The node as it announces itself; its state is the keeper's to say. */
  readonly row: () => Omit<NodeRow, "state">;
  readonly host: {
    adopt(hosting: Omit<Hosting, "keepsHistory">, replay: Replay): Promise<void>;
    drain(shard: ShardId): Promise<void>;
    drop(shard: ShardId, why: LossReason, hint?: string): void;
  };
  readonly replay: (shard: ShardId) => Promise<Replay>;
  /** Reaches another node; absent where there is none. */
  readonly send?: ((to: string, request: ShardRequest, timeoutMs: number) => Promise<ShardResponse>) | undefined;
  readonly report: (doing: string, error: unknown) => void;
};

type Holding = {
  readonly shard: ShardId;
  readonly epoch: Epoch;
  readonly lease: OwnerLease;
  phase: "loading" | "serving" | "leaving";
};

const preparedMax = 4;

export class Keeper {
  readonly #ports: KeeperPorts;
  readonly #held = new Map<ShardId, Holding>();
  readonly #troubles: Troubles;
  readonly #prepared = new Map<ShardId, { readonly replay: Replay; readonly untilMono: number }>();
  readonly #hints = new Map<ShardId, string>();
  readonly #bell: Bell;
  readonly #ending = new AbortController();
  readonly #owners = new Map<ShardId, Ownership>();
  #ownerships: readonly Ownership[] = [];
  #nodes: readonly NodeSeen[] = [];
  #state: NodeRow["state"] = "up";
  #running = false;
  #movedMono = Number.NEGATIVE_INFINITY;
  #rounds = 0;
  #loops: Promise<void> = Promise.resolve();

  constructor(ports: KeeperPorts) {
    this.#ports = ports;
    this.#bell = new Bell(ports.clock);
    this.#troubles = new Troubles(ports.clock, ports.settings);
  }

  start(): void {
    this.#running = true;
    this.#loops = Promise.all([this.#renewLoop(), this.#leaseLoop(), this.#balanceLoop()]).then(() => {});
  }

  /** Hands every shard to another node, or releases it, and ends. */
  async stop(): Promise<void> {
    if (!this.#running) return;
    this.#state = "leaving";
    const unreachable = (error: unknown): void => this.#ports.report("announce leaving", error);
    await this.#announce()
      .then(() => this.#survey(), unreachable)
      .catch(unreachable);
    const heirs = successors(this.#standing());
    const shards = [...this.#held.keys()];
    await inParallel(this.#ports.settings.takesMax, shards, (shard, i) =>
      this.#handOver(shard, heirs.length === 0 ? undefined : heirs[i % heirs.length]),
    );
    await inParallel(this.#ports.settings.takesMax, [...this.#held.values()], (holding) => this.#giveUp(holding));
    this.kill();
    await this.#loops;
  }

  kill(): void {
    this.#running = false;
    this.#bell.stop();
    this.#ending.abort();
  }

  get held(): ReadonlyMap<ShardId, Readonly<Holding>> {
    return this.#held;
  }

  get troubles(): ReadonlyMap<ShardId, Trouble> {
    return this.#troubles.all;
  }

  /** Looks for work to do now rather than at the next round. */
  poke(): void {
    this.#bell.ring();
  }

  hintOf(shard: ShardId): string | undefined {
    const hint = this.#hints.get(shard);
    if (hint !== undefined) return hint;
    const row = this.#owners.get(shard);
    return row?.owner === this.#ports.node ? undefined : row?.address;
  }

  /** The host gave the shard up by itself. */
  lost(shard: ShardId, epoch: Epoch, why: LossReason): void {
    const holding = this.#held.get(shard);
    if (holding?.epoch !== epoch || holding.phase === "leaving") return;
    this.#held.delete(shard);
    if (why === "broken") this.#troubles.add(shard, new Fault("internal", "serve shard", { shard, why: "it broke" }));
    this.#bell.ring();
  }

  /** Moves one shard to a named node. */
  handOver(shard: ShardId, successor: NodeId): Promise<boolean> {
    return this.#handOver(shard, successor);
  }

  /** Another node hands a shard to this one. */
  async take({ shard, when }: Extract<ShardRequest, { kind: "take" }>): Promise<ShardResponse> {
    const elsewhere: ShardResponse = { kind: "not-owner", shard, hint: this.hintOf(shard) };
    if (!this.#running || this.#state !== "up") return elsewhere;
    try {
      if (when === "prepare") await this.#prepare(shard);
      else if (!(await this.#take(shard))) return elsewhere;
    } catch (error) {
      this.#ports.report(`take shard ${shard}`, error);
      return { kind: "overloaded", retryAfterMs: this.#ports.settings.troubleMs };
    }
    return { kind: "reply", stamp: { epoch: this.#held.get(shard)?.epoch ?? 0, seq: 0 }, reply: { claims: 0 } };
  }

  async #renewLoop(): Promise<void> {
    const { settings, report } = this.#ports;
    while (this.#running) {
      let waitMs = settings.renewMs;
      try {
        await this.#renew();
        await this.#announce();
      } catch (error) {
        report("renew leases", error);
        waitMs = settings.renewRetryMs;
      }
      await this.#pause(waitMs);
    }
  }

  async #announce(): Promise<void> {
    const { journal, settings, row } = this.#ports;
    await journal.announce({ ...row(), state: this.#state }, settings.announceTtlMs);
  }

  /** A little more or less each time, so that nodes do not all ask at once. */
  async #pause(ms: number): Promise<void> {
    const { clock, random } = this.#ports;
    await clock.sleep(ms * (0.9 + 0.1 * random.fraction()), this.#ending.signal).catch(() => {});
  }

  async #renew(): Promise<void> {
    const { clock, journal, node, settings, storeClock } = this.#ports;
    const asked = [...this.#held.values()];
    if (asked.length === 0) return;
    const sentMono = clock.monotonicMs();
    const { held, storeNowMs } = await journal.renew(
      node,
      asked.map(({ shard, epoch }) => ({ shard, epoch })),
      settings.leaseMs,
    );
    if (!this.#running) return;
    storeClock.observe(storeNowMs, sentMono);
    const renewed = new Set(held);
    for (const holding of asked) {
      if (this.#held.get(holding.shard) !== holding) continue;
      // O2: one that ran out while the journal was being asked stays so, although the journal now says otherwise.
      if (!renewed.has(holding.shard)) this.#stepDown(holding, "fenced");
      else if (!holding.lease.standsAt(clock.monotonicMs())) this.#stepDown(holding, "lease");
      else holding.lease.untilMono = Math.max(holding.lease.untilMono, this.#leaseFrom(sentMono));
    }
  }

  async #leaseLoop(): Promise<void> {
    const { clock, settings } = this.#ports;
    while (this.#running) {
      await this.#pause(settings.renewRetryMs);
      const mono = clock.monotonicMs();
      for (const holding of [...this.#held.values()])
        if (!holding.lease.standsAt(mono)) this.#stepDown(holding, "lease");
    }
  }

  #stepDown(holding: Holding, why: LossReason): void {
    if (!this.#running || this.#held.get(holding.shard) !== holding) return;
    this.#ports.report(`step down from shard ${holding.shard}`, new Fault("stale", "keep shard", { why }));
    this.#held.delete(holding.shard);
    this.#ports.host.drop(holding.shard, why);
    this.#bell.ring();
  }

  async #balanceLoop(): Promise<void> {
    const { settings, report } = this.#ports;
    await this.#announce().catch((error: unknown) => report("announce the node", error));
    while (this.#running) {
      let moved = false;
      try {
        await this.#survey();
        if (this.#state === "up" && this.#running) {
          await this.#takeFree();
          moved = await this.#moveOne();
        }
      } catch (error) {
        report("look for shards", error);
      }
      if (this.#running) await this.#bell.wait(moved ? settings.moveEveryMs : settings.balanceMs);
    }
  }

  /** Sees who is there and who owns what. */
  async #survey(): Promise<void> {
    const { journal } = this.#ports;
    if (this.#rounds % 8 === 0) await journal.raiseFeatureLevel();
    this.#rounds += 1;
    this.#nodes = await journal.nodes();
    this.#ownerships = await journal.ownerships();
    for (const row of this.#ownerships) {
      this.#owners.set(row.shard, row);
      if (row.owner === undefined) continue;
      this.#hints.delete(row.shard);
      if (row.owner !== this.#ports.node && row.remainingMs > 0) this.#troubles.forget(row.shard);
    }
  }

  #standing(): Standing {
    const { node } = this.#ports;
    return { node, held: new Set(this.#held.keys()), ownerships: this.#ownerships, nodes: this.#nodes };
  }

  async #takeFree(): Promise<void> {
    const shards = toTake(this.#standing()).filter((shard) => this.#troubles.mayTry(shard));
    await inParallel(this.#ports.settings.takesMax, shards, async (shard) => {
      if (!this.#running || this.#state !== "up") return;
      await this.#take(shard).catch((error: unknown) => this.#ports.report(`take shard ${shard}`, error));
    });
  }

  async #moveOne(): Promise<boolean> {
    const { clock, settings } = this.#ports;
    const successor = moveTo(this.#standing());
    const shard = [...this.#held.values()].find(({ phase }) => phase === "serving")?.shard;
    if (successor === undefined || shard === undefined) return false;
    if (clock.monotonicMs() - this.#movedMono < settings.moveEveryMs) return true;
    this.#movedMono = clock.monotonicMs();
    return this.#handOver(shard, successor);
  }

  /** True when the shard is served here. */
  async #take(shard: ShardId): Promise<boolean> {
    const { clock, journal, node, settings, storeClock, row } = this.#ports;
    if (this.#held.has(shard)) return this.#held.get(shard)?.phase === "serving";
    const sentMono = clock.monotonicMs();
    const acquired = await journal.acquire(shard, node, { leaseMs: settings.leaseMs, features: row().features });
    storeClock.observe(acquired.storeNowMs, sentMono);
    if (acquired.kind !== "acquired" || !this.#running || this.#held.has(shard)) {
      if (acquired.kind === "refused")
        this.#troubles.add(shard, new Fault("stale", "acquire shard", { why: acquired.why }));
      return false;
    }
    const lease = new OwnerLease(this.#leaseFrom(sentMono));
    const holding: Holding = { shard, epoch: acquired.epoch, lease, phase: "loading" };
    this.#held.set(shard, holding);
    try {
      await this.#load(holding);
      this.#troubles.over(shard);
      return true;
    } catch (error) {
      this.#failed(holding, error);
      return false;
    }
  }

  async #load(holding: Holding): Promise<void> {
    const { journal, host, replay: begin } = this.#ports;
    const { shard, epoch, lease } = holding;
    const prepared = this.#prepared.get(shard)?.replay;
    this.#prepared.delete(shard);
    // O1: nobody can append behind this tail but us.
    const tail = await journal.tail(shard);
    let replay = prepared;
    try {
      await replay?.readTo(tail.seq);
    } catch (error) {
      // What was read ahead may have been trimmed meanwhile.
      this.#ports.report(`read on in shard ${shard}`, error);
      replay = undefined;
    }
    replay ??= await begin(shard);
    await replay.readTo(tail.seq);
    if (!this.#running || this.#held.get(shard) !== holding)
      throw new Fault("stale", "take over shard", { shard, epoch, why: "lost while its log was read" });
    await host.adopt({ shard, epoch, lease, state: replay.state, seq: replay.seq }, replay);
    holding.phase = "serving";
  }

  #failed(holding: Holding, error: unknown): void {
    const { report } = this.#ports;
    const { shard } = holding;
    if (!this.#running) return;
    report(`take over shard ${shard}`, error);
    this.#troubles.add(shard, error);
    // Another node may fare better.
    void this.#giveUp(holding);
  }

  async #giveUp(holding: Holding): Promise<void> {
    const { journal, report, host } = this.#ports;
    const { shard, epoch } = holding;
    if (this.#held.get(shard) !== holding) return;
    this.#held.delete(shard);
    host.drop(shard, "stopped");
    await journal.release(shard, epoch).catch((cause: unknown) => report(`release shard ${shard}`, cause));
  }

  async #prepare(shard: ShardId): Promise<void> {
    const { clock, journal, settings } = this.#ports;
    const mono = clock.monotonicMs();
    for (const [other, { untilMono }] of this.#prepared) if (untilMono < mono) this.#prepared.delete(other);
    if (this.#prepared.size >= preparedMax) throw new Fault("exhausted", "prepare shard", { shard });
    const replay = await this.#ports.replay(shard);
    await replay.readTo((await journal.tail(shard)).seq);
    this.#prepared.set(shard, { replay, untilMono: clock.monotonicMs() + settings.prepareMs });
  }

  async #handOver(shard: ShardId, successor: NodeId | undefined): Promise<boolean> {
    const { journal, host, report, settings, send } = this.#ports;
    const holding = this.#held.get(shard);
    if (holding?.phase !== "serving") return false;
    const address = this.#nodes.find(({ node }) => node === successor)?.address;
    if (successor !== undefined && address !== undefined && !(await this.#isReady(shard, address))) {
      if (this.#state === "up") return false;
    }
    if (this.#held.get(shard) !== holding || holding.phase !== "serving") return false;
    holding.phase = "leaving";
    if (address !== undefined) this.#hints.set(shard, address);
    await host.drain(shard);
    try {
      if (this.#held.get(shard) === holding) {
        const { reservedMs } = settings;
        await journal.release(
          shard,
          holding.epoch,
          successor === undefined ? undefined : { node: successor, reservedMs },
        );
      }
    } catch (error) {
      report(`release shard ${shard}`, error);
    }
    if (this.#held.get(shard) === holding) this.#held.delete(shard);
    host.drop(shard, "moved", address);
    if (address !== undefined && send)
      send(address, { kind: "take", shard, when: "now" }, settings.prepareMs).catch((error: unknown) =>
        report(`tell the successor of shard ${shard}`, error),
      );
    return true;
  }

  /** The successor reads the log while the shard is still served here, so that the gap is short. */
  async #isReady(shard: ShardId, address: string): Promise<boolean> {
    const { send, settings, report } = this.#ports;
    if (!send) return true;
    try {
      return (await send(address, { kind: "take", shard, when: "prepare" }, settings.prepareMs)).kind === "reply";
    } catch (error) {
      if (!isFault(error)) throw error;
      report(`prepare the move of shard ${shard}`, error);
      return false;
    }
  }

  #leaseFrom(sentMono: number): number {
    const { leaseMs, driftShare } = this.#ports.settings;
    return sentMono + leaseMs * (1 - driftShare);
  }
}

async function inParallel<T>(max: number, items: readonly T[], run: (item: T, index: number) => Promise<unknown>) {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const index = next;
      next += 1;
      await run(items[index] as T, index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(max, items.length) }, lane));
}

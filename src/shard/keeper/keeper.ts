/**
 * Keeps the node's shards: takes free ones (keeper/take-over.ts), renews their leases and steps down in time
 * (keeper/holdings.ts), and hands over (keeper/hand-over.ts).
 *
 * OW1 A shard is served only after its state was replayed to a tail that was read after its epoch was acquired (K8).
 * OW2 A lease is counted from before the request that acquired or renewed it was sent, on the monotonic clock; when it
 * has expired the shard is given up, whatever the journal may say later.
 * OW3 A shard that cannot be read back is not served and is reported; the others go on.
 */
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Epoch, NodeId, NodeRow, NodeSeen } from "#journal/journal.ts";
import type { LossReason } from "#shard/host/shard.ts";
import { Arrivals } from "./arrivals.ts";
import { Bell } from "./bell.ts";
import { HandOvers } from "./hand-over.ts";
import { Holdings, type Holding } from "./holdings.ts";
import { inParallel } from "./lanes.ts";
import { withTimeouts } from "./timeouts.ts";
import type { KeeperPorts } from "./ports.ts";
import { ReadAhead } from "./read-ahead.ts";
import { toTake, toTakeSoon } from "./share.ts";
import { TakeOvers } from "./take-over.ts";
import { Troubles, type Trouble } from "./trouble.ts";
import { ClusterView } from "./view.ts";
import type { ShardRequest, ShardResponse } from "#shard/transport/protocol.ts";

/** This long after a lease has ended by our clock, it has ended by the store's clock too. */
const lookLateMs = 10;
const arrivalMsMax = 1_000;

export type ShardReach = {
  readonly shards: number;
  readonly reachable: number;
  /** How many of the others could not be read back. */
  readonly troubled: number;
  /** When the journal last answered, on the monotonic clock; undefined before the first answer. */
  readonly lookedMono: number | undefined;
};

export class Keeper {
  readonly #ports: KeeperPorts;
  readonly #view: ClusterView;
  readonly #holdings: Holdings;
  readonly #troubles: Troubles;
  readonly #ahead: ReadAhead;
  readonly #arrivals: Arrivals;
  readonly #takeOvers: TakeOvers;
  readonly #handOvers: HandOvers;
  readonly #bell: Bell;
  readonly #ending = new AbortController();
  #state: NodeRow["state"] = "up";
  #running = false;

  constructor(given: KeeperPorts) {
    const { clock, settings, replay } = given;
    const journal = withTimeouts(given.journal, clock, settings.leaseMs);
    const ports = { ...given, journal };
    this.#ports = ports;
    this.#view = new ClusterView(ports);
    this.#bell = new Bell(clock);
    this.#troubles = new Troubles(clock, settings);
    this.#arrivals = new Arrivals(clock, arrivalMsMax);
    this.#ahead = new ReadAhead({ clock, journal, replay, keepMs: settings.prepareMs });
    const isRunning = (): boolean => this.#running;
    const isUp = (): boolean => this.#state === "up";
    const lookAgain = (): void => this.#bell.ring();
    this.#holdings = new Holdings({ ...ports, isRunning, steppedDown: lookAgain });
    this.#takeOvers = new TakeOvers({
      ...ports,
      holdings: this.#holdings,
      ahead: this.#ahead,
      arrivals: this.#arrivals,
      troubles: this.#troubles,
      isRunning,
      mayTake: () => isRunning() && isUp(),
    });
    this.#handOvers = new HandOvers({
      ...ports,
      holdings: this.#holdings,
      view: this.#view,
      isUp,
      moved: lookAgain,
    });
  }

  start(): void {
    this.#running = true;
    // A database that does not answer must not cost the shards of the others their leases.
    for (let i = 0; i < (this.#ports.journal.partition?.databases ?? 1); i += 1) void this.#renewLoop(i);
    void this.#announceLoop();
    void this.#leaseLoop();
    void this.#balanceLoop();
  }

  /** Hands every shard to another node, or releases it, and ends. */
  async stop(): Promise<void> {
    if (!this.#running) return;
    await this.leave();
    await inParallel(this.#ports.settings.takesMax, [...this.#holdings.all.keys()], (shard) =>
      this.#handOvers.handOver(shard, undefined),
    );
    await inParallel(this.#ports.settings.takesMax, [...this.#holdings.all.values()], (holding) =>
      this.#holdings.giveUp(holding),
    );
    this.kill();
  }

  /**
   * Takes no more shards and hands over those that it has, until `resume` or `stop`. It keeps shards that no other node
   * can take, because one node must serve them.
   */
  async leave(): Promise<void> {
    if (!this.#running) return;
    this.#state = "leaving";
    try {
      await this.#announce();
      await this.#view.look();
    } catch (error) {
      this.#ports.report("announce leaving", error);
    }
    await this.#handOvers.handAll();
  }

  async resume(): Promise<void> {
    if (!this.#running || this.#state === "up") return;
    this.#state = "up";
    await this.#announce().catch((error: unknown) => this.#ports.report("announce the node", error));
    this.#bell.ring();
  }

  kill(): void {
    this.#running = false;
    this.#bell.stop();
    this.#ending.abort();
  }

  get held(): ReadonlyMap<ShardId, Readonly<Holding>> {
    return this.#holdings.all;
  }

  get troubles(): ReadonlyMap<ShardId, Trouble> {
    return this.#troubles.all;
  }

  /** Which of this many shards can be reached: served here, or by another node as of the last look at the journal. */
  reach(shards: number): ShardReach {
    const { all } = this.#troubles;
    let [reachable, troubled] = [0, 0];
    for (let shard = 0; shard < shards; shard += 1)
      if (this.#holdings.all.get(shard)?.phase === "serving" || this.#view.isAnothers(shard)) reachable += 1;
      else if (all.has(shard)) troubled += 1;
    return { shards, reachable, troubled, lookedMono: this.#view.lookedMono };
  }

  hintOf(shard: ShardId): string | undefined {
    return this.#view.hintOf(shard);
  }

  get featureLevel(): number {
    return this.#view.featureLevel;
  }

  /** The other nodes that may own shards, as of the last look at the journal. */
  get nodes(): readonly NodeSeen[] {
    return this.#view.nodes;
  }

  /** The host gave the shard up by itself. */
  lost(shard: ShardId, epoch: Epoch, why: LossReason): void {
    const holding = this.#holdings.all.get(shard);
    if (holding?.epoch !== epoch || holding.phase === "leaving") return;
    this.#holdings.release(holding);
    if (why === "broken") this.#troubles.add(shard, new Fault("internal", "serve shard", { shard, why: "it broke" }));
    this.#bell.ring();
  }

  /** Something changed that says where shards belong. */
  look(): void {
    this.#bell.ring();
  }

  /** Moves one shard to a named node. */
  handOver(shard: ShardId, successor: NodeId): Promise<boolean> {
    return this.#handOvers.handOver(shard, successor);
  }

  /** Whether the shard is on its way here: being taken over, or announced by the node that hands it over. */
  isComing(shard: ShardId): boolean {
    if (this.#holdings.all.get(shard)?.phase === "serving") return false;
    return this.#takeOvers.isUnderWay(shard) || this.#ahead.isAnnounced(shard);
  }

  /** Resolves when a shard that is on its way can be asked, or will not come soon. */
  arrival(shard: ShardId): Promise<void> {
    return this.#arrivals.wait(shard);
  }

  /** Another node hands a shard to this one. */
  async take({ shard, when }: Extract<ShardRequest, { kind: "take" }>): Promise<ShardResponse> {
    const elsewhere: ShardResponse = { kind: "not-owner", shard, hint: this.hintOf(shard) };
    if (!this.#running || this.#state !== "up") return elsewhere;
    try {
      if (when === "prepare") await this.#takeOvers.expect(shard);
      // The first attempt may have started before the shard was released.
      else if (!(await this.#takeOvers.take(shard)) && !(await this.#takeOvers.take(shard))) return elsewhere;
    } catch (error) {
      this.#ports.report(`take shard ${shard}`, error);
      return { kind: "overloaded", retryAfterMs: this.#ports.settings.troubleMs };
    }
    return { kind: "reply", stamp: { epoch: this.#holdings.all.get(shard)?.epoch ?? 0, seq: 0 }, reply: { claims: 0 } };
  }

  async #renewLoop(database: number): Promise<void> {
    await this.#again("renew leases", () => this.#holdings.renew(database));
  }

  async #announceLoop(): Promise<void> {
    await this.#again("announce the node", () => this.#announce());
  }

  /** As often as leases are renewed, and sooner after a failure. */
  async #again(doing: string, act: () => Promise<void>): Promise<void> {
    const { settings, report } = this.#ports;
    while (this.#running) {
      let waitMs = settings.renewMs;
      try {
        await act();
      } catch (error) {
        report(doing, error);
        waitMs = settings.renewRetryMs;
      }
      await this.#pause(waitMs);
    }
  }

  /** OW2: steps down in time even if the journal does not answer: when the first lease ends, unless it is renewed. */
  async #leaseLoop(): Promise<void> {
    const { clock, settings } = this.#ports;
    while (this.#running) {
      const ends = [...this.#holdings.all.values()].map(({ lease }) => lease.untilMono);
      // A lease that took long to acquire is short from the start, so new leases are checked soon.
      const soonestMs = Math.min(settings.leaseMs / 6, ...ends.map((end) => end - clock.monotonicMs()));
      await clock.sleep(Math.max(lookLateMs, soonestMs), this.#ending.signal).catch(() => {});
      this.#holdings.stepDownLapsed();
    }
  }

  async #announce(): Promise<void> {
    const { journal, settings, row } = this.#ports;
    await journal.announce({ ...row(), state: this.#state }, settings.announceTtlMs);
  }

  async #balanceLoop(): Promise<void> {
    const { settings, report } = this.#ports;
    await this.#announce().catch((error: unknown) => report("announce the node", error));
    while (this.#running) {
      let waitMs = settings.balanceMs;
      try {
        await this.#view.look();
        for (const shard of this.#troubles.all.keys()) if (this.#view.isAnothers(shard)) this.#troubles.forget(shard);
        await this.#takeFree();
        if (this.#state === "leaving") await this.#handOvers.handAll(); // to a node that has joined in the meantime
        if (this.#handOvers.moveOne()) waitMs = settings.moveEveryMs;
        this.#readAhead();
        waitMs = Math.min(waitMs, this.#nextLookMs());
      } catch (error) {
        report("look for shards", error);
      }
      await this.#bell.wait(waitMs);
    }
  }

  /** A lease that is not renewed is checked when it is half over and when it ends, not at the next round. */
  #nextLookMs(): number {
    const { soonestEndMs } = this.#view;
    const fadingMs = soonestEndMs - this.#ports.settings.leaseMs / 2;
    return (fadingMs > 0 ? fadingMs : soonestEndMs) + lookLateMs;
  }

  /** A shard whose owner has missed its renewals will soon be free: read its log ahead. */
  #readAhead(): void {
    const { settings, report } = this.#ports;
    const standing = this.#view.standing(new Set(this.#holdings.all.keys()));
    const soon = this.#state === "up" ? toTakeSoon(standing, settings.leaseMs / 2) : [];
    this.#ahead.guess(new Set(soon), (shard, error) => report(`read ahead in shard ${shard}`, error));
  }

  async #takeFree(): Promise<void> {
    const standing = this.#view.standing(new Set(this.#holdings.all.keys()));
    const kept = this.#handOvers.kept();
    const shards = toTake(standing).filter((shard) => this.#troubles.mayTry(shard) && !kept.has(shard));
    await inParallel(this.#ports.settings.takesMax, shards, async (shard) => {
      await this.#takeOvers.take(shard).catch((error: unknown) => this.#ports.report(`take shard ${shard}`, error));
    });
  }

  /** A little shorter each time at random, so that nodes do not all ask at once. */
  async #pause(ms: number): Promise<void> {
    const { clock, random } = this.#ports;
    await clock.sleep(ms * (0.9 + 0.1 * random.fraction()), this.#ending.signal).catch(() => {});
  }
}

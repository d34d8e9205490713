/**
 * Keeps the node's shards: takes those that nobody owns, renews their leases, steps down in time, and hands over.
 *
 * O1 A shard is served only after its state was replayed to a tail that was read after its epoch was acquired (K8).
 * O2 A lease is counted from before the request that won it was sent, on the monotonic clock; when it has run out the
 *    shard is given up, whatever the journal may say later.
 * O3 A shard that cannot be read back is not served and is reported; the others go on.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Random } from "#base/random.ts";
import type { Epoch, NodeId, NodeRow, NodeSeen } from "#journal/journal.ts";
import { OwnerLease, type Hosting, type LossReason } from "./host-shard.ts";
import type { StoreClock } from "./kernel-clock.ts";
import { Arrivals } from "./keeper-arrivals.ts";
import { Bell } from "./keeper-bell.ts";
import { inParallel } from "./keeper-lanes.ts";
import { patient, type KeeperJournal } from "./keeper-patience.ts";
import { ReadAhead } from "./keeper-read-ahead.ts";
import type { Replay } from "./keeper-replay.ts";
import type { KeeperSettings } from "./keeper-settings.ts";
import { bestFor, moveTo, successors, toTake, toTakeSoon } from "./keeper-share.ts";
import { Troubles, type Trouble } from "./keeper-trouble.ts";
import type { Turns } from "./keeper-turns.ts";
import { ClusterView } from "./keeper-view.ts";
import type { ShardRequest, ShardResponse } from "./protocol.ts";

export type KeeperPorts = {
  readonly node: NodeId;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly journal: KeeperJournal;
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
  /** In which logs are read. */
  readonly turns: Turns;
  /** Reaches another node; absent where there is none. */
  readonly send?: ((to: string, request: ShardRequest, timeoutMs: number) => Promise<ShardResponse>) | undefined;
  readonly report: (doing: string, error: unknown) => void;
};

class Holding {
  readonly shard: ShardId;
  readonly epoch: Epoch;
  readonly lease: OwnerLease;
  phase: "loading" | "serving" | "leaving" = "loading";
  /** Rejects when the shard is given up, so that nobody waits for a log that will not be read to its end. */
  readonly over = Promise.withResolvers<never>();

  constructor(shard: ShardId, epoch: Epoch, lease: OwnerLease) {
    this.shard = shard;
    this.epoch = epoch;
    this.lease = lease;
    this.over.promise.catch(() => {});
  }
}

/** After a lease's end by our reckoning, it has ended by the store's as well. */
const lookLateMs = 10;
const arrivalMsMax = 1_000;
/** While one arrives, the next one's log is read. A node refuses to read for many at once. */
const toOneHeirMax = 2;

export class Keeper {
  readonly #ports: KeeperPorts;
  readonly #journal: KeeperJournal;
  readonly #view: ClusterView;
  readonly #held = new Map<ShardId, Holding>();
  readonly #troubles: Troubles;
  readonly #ahead: ReadAhead;
  readonly #arrivals: Arrivals;
  readonly #taking = new Map<ShardId, Promise<boolean>>();
  /** Shards that were handed over, and until when they are kept for their heirs. */
  readonly #handedOver = new Map<ShardId, number>();
  readonly #bell: Bell;
  readonly #ending = new AbortController();
  #state: NodeRow["state"] = "up";
  #running = false;
  #movedMono = Number.NEGATIVE_INFINITY;
  #isMoving = false;
  #handing: Promise<void> | undefined;

  constructor(ports: KeeperPorts) {
    this.#ports = ports;
    const { journal, clock, settings, node, replay } = ports;
    this.#journal = patient(journal, clock, settings.leaseMs);
    this.#view = new ClusterView(this.#journal, node, ports.report);
    this.#bell = new Bell(clock);
    this.#troubles = new Troubles(clock, settings);
    this.#arrivals = new Arrivals(clock, arrivalMsMax);
    this.#ahead = new ReadAhead({ clock, journal: this.#journal, replay, keepMs: settings.prepareMs });
  }

  start(): void {
    this.#running = true;
    void this.#renewLoop();
    void this.#leaseLoop();
    void this.#balanceLoop();
  }

  /** Hands every shard to another node, or releases it, and ends. */
  async stop(): Promise<void> {
    if (!this.#running) return;
    await this.leave();
    await inParallel(this.#ports.settings.takesMax, [...this.#held.keys()], (shard) =>
      this.#handOver(shard, undefined),
    );
    await inParallel(this.#ports.settings.takesMax, [...this.#held.values()], (holding) => this.#giveUp(holding));
    this.kill();
  }

  /**
   * Takes no more shards and hands over those that it has, until `resume` or `stop`. What no other node can have it
   * keeps: somebody has to.
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
    await this.#handAll();
  }

  async resume(): Promise<void> {
    if (!this.#running || this.#state === "up") return;
    this.#state = "up";
    await this.#announce().catch((error: unknown) => this.#ports.report("announce the node", error));
    this.#bell.ring();
  }

  #handAll(): Promise<void> {
    return (this.#handing ??= this.#handToHeirs().finally(() => (this.#handing = undefined)));
  }

  async #handToHeirs(): Promise<void> {
    const heirs = successors(this.#view.standing(new Set(this.#held.keys())));
    const shards = [...this.#held.keys()];
    const hand = heirs.map((heir, n) => {
      const its = shards.filter((_, i) => i % heirs.length === n);
      return inParallel(toOneHeirMax, its, (shard) => this.#handOver(shard, heir));
    });
    await Promise.all(hand);
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

  hintOf(shard: ShardId): string | undefined {
    return this.#view.hintOf(shard);
  }

  /** Who else may own shards, as the journal's table said at the last look. */
  get nodes(): readonly NodeSeen[] {
    return this.#view.nodes;
  }

  /** The host gave the shard up by itself. */
  lost(shard: ShardId, epoch: Epoch, why: LossReason): void {
    const holding = this.#held.get(shard);
    if (holding?.epoch !== epoch || holding.phase === "leaving") return;
    this.#release(holding);
    if (why === "broken") this.#troubles.add(shard, new Fault("internal", "serve shard", { shard, why: "it broke" }));
    this.#bell.ring();
  }

  /** Moves one shard to a named node. */
  handOver(shard: ShardId, successor: NodeId): Promise<boolean> {
    return this.#handOver(shard, successor);
  }

  /** Whether the shard is on its way here: being taken over, or announced by the node that hands it over. */
  isComing(shard: ShardId): boolean {
    if (this.#held.get(shard)?.phase === "serving") return false;
    return this.#taking.has(shard) || this.#ahead.isAnnounced(shard);
  }

  /** Resolves when a shard that is coming can be asked, or will not be for a while. */
  arrival(shard: ShardId): Promise<void> {
    return this.#arrivals.wait(shard);
  }

  /** Another node hands a shard to this one. */
  async take({ shard, when }: Extract<ShardRequest, { kind: "take" }>): Promise<ShardResponse> {
    const elsewhere: ShardResponse = { kind: "not-owner", shard, hint: this.hintOf(shard) };
    if (!this.#running || this.#state !== "up") return elsewhere;
    try {
      if (when === "prepare") await this.#expect(shard);
      // The first may have been under way since before the shard was released.
      else if (!(await this.#take(shard)) && !(await this.#take(shard))) return elsewhere;
    } catch (error) {
      this.#ports.report(`take shard ${shard}`, error);
      return { kind: "overloaded", retryAfterMs: this.#ports.settings.troubleMs };
    }
    return { kind: "reply", stamp: { epoch: this.#held.get(shard)?.epoch ?? 0, seq: 0 }, reply: { claims: 0 } };
  }

  /** Gets ready for a shard that another node will let go of as soon as this has been done. */
  async #expect(shard: ShardId): Promise<void> {
    // An announcement may come twice, or late: what is here is not expected.
    if (this.#held.has(shard)) return;
    await this.#ahead.prepare(shard, "announced");
    // One at a time, and no other log is read meanwhile: each of them needs the loop for itself.
    await this.#ports.turns.hold(() => this.#arrivals.wait(shard));
    if (this.#held.has(shard)) return this.#ahead.forget(shard);
    // The log has grown. What is left is read now, not when nobody serves the shard.
    await this.#ahead.prepare(shard, "announced", "first");
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

  async #renew(): Promise<void> {
    const { clock, node, settings, storeClock } = this.#ports;
    const asked = [...this.#held.values()];
    if (asked.length === 0) return;
    const sentMono = clock.monotonicMs();
    const bounds = asked.map(({ shard, epoch }) => ({ shard, epoch }));
    const { held, storeNowMs } = await this.#journal.renew(node, bounds, settings.leaseMs);
    if (!this.#running) return;
    storeClock.observe(storeNowMs, sentMono);
    const renewed = new Set(held);
    for (const holding of asked) {
      if (!renewed.has(holding.shard)) this.#stepDown(holding, "fenced");
      // O2: one that ran out while the journal was being asked stays so, although the journal now says otherwise.
      else if (!holding.lease.standsAt(clock.monotonicMs())) this.#stepDown(holding, "lease");
      else holding.lease.untilMono = Math.max(holding.lease.untilMono, this.#leaseFrom(sentMono));
    }
  }

  /** O2: in time, also when the journal does not answer: when the first one ends, unless it is renewed. */
  async #leaseLoop(): Promise<void> {
    const { clock, settings } = this.#ports;
    while (this.#running) {
      const ends = [...this.#held.values()].map(({ lease }) => lease.untilMono);
      // One that took long to win is short from the beginning, so those that come meanwhile are looked at soon.
      const soonestMs = Math.min(settings.leaseMs / 6, ...ends.map((end) => end - clock.monotonicMs()));
      await clock.sleep(Math.max(lookLateMs, soonestMs), this.#ending.signal).catch(() => {});
      const lapsed = [...this.#held.values()].filter(({ lease }) => !lease.standsAt(clock.monotonicMs()));
      for (const holding of lapsed) this.#stepDown(holding, "lease");
    }
  }

  async #announce(): Promise<void> {
    const { settings, row } = this.#ports;
    await this.#journal.announce({ ...row(), state: this.#state }, settings.announceTtlMs);
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
        if (this.#state === "leaving") await this.#handAll(); // to one that has come meanwhile
        if (this.#moveOne()) waitMs = settings.moveEveryMs;
        this.#readAhead();
        waitMs = Math.min(waitMs, this.#nextLookMs());
      } catch (error) {
        report("look for shards", error);
      }
      await this.#bell.wait(waitMs);
    }
  }

  /** A lease that is not renewed is looked at when it is half over and when it ends, not at the next round. */
  #nextLookMs(): number {
    const { soonestEndMs } = this.#view;
    const fadingMs = soonestEndMs - this.#ports.settings.leaseMs / 2;
    return (fadingMs > 0 ? fadingMs : soonestEndMs) + lookLateMs;
  }

  /** Whose owner has missed its renewals will soon be free: what it takes to serve it is begun before. */
  #readAhead(): void {
    const { settings, report } = this.#ports;
    const standing = this.#view.standing(new Set(this.#held.keys()));
    const soon = this.#state === "up" ? toTakeSoon(standing, settings.leaseMs / 2) : [];
    this.#ahead.guess(new Set(soon), (shard, error) => report(`read ahead in shard ${shard}`, error));
  }

  async #takeFree(): Promise<void> {
    const standing = this.#view.standing(new Set(this.#held.keys()));
    const mono = this.#ports.clock.monotonicMs();
    for (const [shard, untilMono] of this.#handedOver) if (untilMono < mono) this.#handedOver.delete(shard);
    const shards = toTake(standing).filter((shard) => this.#troubles.mayTry(shard) && !this.#handedOver.has(shard));
    await inParallel(this.#ports.settings.takesMax, shards, async (shard) => {
      await this.#take(shard).catch((error: unknown) => this.#ports.report(`take shard ${shard}`, error));
    });
  }

  /** True when there is one to move, and it is too soon after the last. */
  #moveOne(): boolean {
    const { clock, settings, report } = this.#ports;
    const successor = moveTo(this.#view.standing(new Set(this.#held.keys())));
    const serving = [...this.#held.values()].filter(({ phase }) => phase === "serving").map(({ shard }) => shard);
    const shard = successor === undefined ? undefined : bestFor(successor, serving);
    if (successor === undefined || shard === undefined || this.#state !== "up" || this.#isMoving) return false;
    if (clock.monotonicMs() - this.#movedMono < settings.moveEveryMs) return true;
    this.#movedMono = clock.monotonicMs();
    this.#isMoving = true;
    // Not waited for: a successor that sleeps must not keep this node from taking what is free.
    this.#handOver(shard, successor)
      .then((moved) => {
        if (moved) this.#bell.ring();
      })
      .catch((error: unknown) => report(`move shard ${shard}`, error))
      .finally(() => (this.#isMoving = false));
    return false;
  }

  /** True when the shard is served here. Asked for twice at once (a hand-over and a look around), it is taken once. */
  #take(shard: ShardId): Promise<boolean> {
    const under = this.#taking.get(shard);
    if (under) return under;
    const taking = this.#takeOver(shard).finally(() => {
      this.#taking.delete(shard);
      this.#arrivals.over(shard);
    });
    this.#taking.set(shard, taking);
    return taking;
  }

  async #takeOver(shard: ShardId): Promise<boolean> {
    const { clock, node, settings, storeClock, row } = this.#ports;
    if (!this.#running || this.#state !== "up") return false;
    if (this.#held.has(shard)) return this.#held.get(shard)?.phase === "serving";
    // Read before it is acquired: however long that takes, it costs no lease and is not done in vain.
    if (!this.#ahead.isAnnounced(shard) && !(await this.#prepared(shard))) return false;
    const sentMono = clock.monotonicMs();
    const wanted = { leaseMs: settings.leaseMs, features: row().features };
    const acquired = await this.#journal.acquire(shard, node, wanted);
    storeClock.observe(acquired.storeNowMs, sentMono);
    if (acquired.kind === "refused")
      this.#troubles.add(shard, new Fault("stale", "acquire shard", { why: acquired.why }));
    if (acquired.kind !== "acquired") this.#ahead.forget(shard);
    if (acquired.kind !== "acquired" || !this.#running) return false;
    const holding = new Holding(shard, acquired.epoch, new OwnerLease(this.#leaseFrom(sentMono)));
    this.#held.set(shard, holding);
    try {
      await Promise.race([this.#load(holding), holding.over.promise]);
      this.#troubles.over(shard);
      return true;
    } catch (error) {
      if (!this.#running) return false;
      this.#ports.report(`take over shard ${shard}`, error);
      if (this.#held.get(shard) === holding) this.#troubles.add(shard, error);
      // Another node may fare better.
      await this.#giveUp(holding);
      return false;
    }
  }

  async #prepared(shard: ShardId): Promise<boolean> {
    const { clock, settings, report } = this.#ports;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const facts = { shard, ms: settings.prepareMs };
    const cancel = clock.after(settings.prepareMs, () => reject(new Fault("unavailable", "read shard", facts)));
    try {
      const reading = this.#ahead.prepare(shard, "taking");
      reading.catch(() => {}); // it may end after nobody waits for it any more
      await Promise.race([reading, late]);
      return this.#running && this.#state === "up";
    } catch (error) {
      if (!this.#running) return false;
      report(`take over shard ${shard}`, error);
      this.#troubles.add(shard, error);
      return false;
    } finally {
      cancel();
    }
  }

  async #load(holding: Holding): Promise<void> {
    const { shard, epoch, lease } = holding;
    // O1: nobody can append behind this tail but us.
    const tail = await this.#journal.tail(shard);
    const replay = (await this.#ahead.readOn(shard, tail.seq)) ?? (await this.#ports.replay(shard));
    await replay.readTo(tail.seq);
    if (!this.#running || this.#held.get(shard) !== holding)
      throw new Fault("stale", "take over shard", { shard, epoch, why: "lost while its log was read" });
    await this.#ports.host.adopt({ shard, epoch, lease, state: replay.state, seq: replay.seq }, replay);
    holding.phase = "serving";
  }

  async #handOver(shard: ShardId, successor: NodeId | undefined): Promise<boolean> {
    const { host, settings } = this.#ports;
    const holding = this.#held.get(shard);
    if (holding?.phase !== "serving") return false;
    const address = this.#view.addressOf(successor);
    // The successor reads the log while the shard is still served here, so that the gap is short.
    const isReady = address === undefined || (await this.#ask(address, shard, "prepare", settings.prepareMs));
    if (!isReady && this.#state === "up") return false;
    if (this.#held.get(shard) !== holding || holding.phase !== "serving") return false;
    holding.phase = "leaving";
    if (address !== undefined) this.#view.send(shard, address);
    await host.drain(shard);
    const heir = successor === undefined || !isReady ? undefined : { node: successor, reservedMs: settings.reservedMs };
    if (heir) this.#handedOver.set(shard, this.#ports.clock.monotonicMs() + heir.reservedMs);
    await this.#giveUp(holding, heir, address);
    // Waited for: until the shard is served there, those who come here for it are told where to go.
    if (heir && address !== undefined) await this.#ask(address, shard, "now", heir.reservedMs);
    return true;
  }

  async #ask(address: string, shard: ShardId, when: "prepare" | "now", timeoutMs: number): Promise<boolean> {
    const { send, report } = this.#ports;
    if (!send) return true;
    try {
      return (await send(address, { kind: "take", shard, when }, timeoutMs)).kind === "reply";
    } catch (error) {
      report(`ask ${address} to take shard ${shard}`, error);
      return false;
    }
  }

  /** Lets go of the shard and says so in the journal, if that can be reached; if not, the lease runs out. */
  async #giveUp(holding: Holding, heir?: { readonly node: NodeId; readonly reservedMs: number }, hint?: string) {
    const { shard, epoch } = holding;
    if (this.#held.get(shard) !== holding) return;
    this.#release(holding);
    this.#ports.host.drop(shard, heir ? "moved" : "stopped", hint);
    const released = this.#journal.release(shard, epoch, heir);
    await released.catch((error: unknown) => this.#ports.report(`release shard ${shard}`, error));
  }

  #stepDown(holding: Holding, why: LossReason): void {
    if (!this.#running || this.#held.get(holding.shard) !== holding) return;
    this.#ports.report(`step down from shard ${holding.shard}`, new Fault("stale", "keep shard", { why }));
    this.#release(holding);
    this.#ports.host.drop(holding.shard, why);
    this.#bell.ring();
  }

  #release(holding: Holding): void {
    this.#held.delete(holding.shard);
    holding.over.reject(new Fault("stale", "keep shard", { shard: holding.shard, epoch: holding.epoch }));
  }

  /** A little shorter each time by chance, so that nodes do not all ask at once. */
  async #pause(ms: number): Promise<void> {
    const { clock, random } = this.#ports;
    await clock.sleep(ms * (0.9 + 0.1 * random.fraction()), this.#ending.signal).catch(() => {});
  }

  #leaseFrom(sentMono: number): number {
    const { leaseMs, driftShare } = this.#ports.settings;
    return sentMono + leaseMs * (1 - driftShare);
  }
}

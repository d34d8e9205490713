/** Takes shards over: reads the log ahead, acquires the shard, and reads the rest of its log (OW1). */
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Arrivals } from "./arrivals.ts";
import type { Holding, Holdings } from "./holdings.ts";
import type { KeeperPorts } from "./ports.ts";
import type { ReadAhead } from "./read-ahead.ts";
import type { Troubles } from "./trouble.ts";

export type TakeOverPorts = Omit<KeeperPorts, "random" | "send"> & {
  readonly holdings: Holdings;
  readonly ahead: ReadAhead;
  readonly arrivals: Arrivals;
  readonly troubles: Troubles;
  readonly isRunning: () => boolean;
  /** Whether the node takes shards at all: it runs and is not about to leave. */
  readonly mayTake: () => boolean;
};

export class TakeOvers {
  readonly #ports: TakeOverPorts;
  readonly #underWay = new Map<ShardId, Promise<boolean>>();

  constructor(ports: TakeOverPorts) {
    this.#ports = ports;
  }

  isUnderWay(shard: ShardId): boolean {
    return this.#underWay.has(shard);
  }

  /** Prepares for a shard that another node will release as soon as this is done. */
  async expect(shard: ShardId): Promise<void> {
    const { holdings, ahead, arrivals, turns } = this.#ports;
    // An announcement may come twice, or late: ignore it for a shard that is here.
    if (holdings.all.has(shard)) return;
    await ahead.prepare(shard, "announced");
    // One at a time, and no other log is read meanwhile: each arrival needs the event loop for itself.
    await turns.hold(() => arrivals.wait(shard));
    if (holdings.all.has(shard)) return ahead.forget(shard);
    // The log has grown. Read the rest now, not after the shard was released.
    await ahead.prepare(shard, "announced", "first");
  }

  /** True when the shard is served here. Concurrent calls (a hand-over and a round) share one take-over. */
  take(shard: ShardId): Promise<boolean> {
    const under = this.#underWay.get(shard);
    if (under) return under;
    const taking = this.#takeOver(shard).finally(() => {
      this.#underWay.delete(shard);
      this.#ports.arrivals.over(shard);
    });
    this.#underWay.set(shard, taking);
    return taking;
  }

  async #takeOver(shard: ShardId): Promise<boolean> {
    const { clock, node, journal, settings, storeClocks, row } = this.#ports;
    const { holdings, ahead, troubles, isRunning, mayTake, report } = this.#ports;
    if (!mayTake()) return false;
    if (holdings.all.has(shard)) return holdings.all.get(shard)?.phase === "serving";
    // Read before it is acquired: however long that takes, it uses up no lease.
    if (!ahead.isAnnounced(shard) && !(await this.#prepared(shard))) return false;
    const sentMono = clock.monotonicMs();
    const wanted = { leaseMs: settings.leaseMs, features: row().features };
    const acquired = await journal.acquire(shard, node, wanted);
    storeClocks.of(shard).observe(acquired.storeNowMs, sentMono);
    if (acquired.kind === "refused") troubles.add(shard, new Fault("stale", "acquire shard", { why: acquired.why }));
    if (acquired.kind !== "acquired") ahead.forget(shard);
    if (acquired.kind !== "acquired" || !isRunning()) return false;
    const holding = holdings.add(shard, acquired.epoch, sentMono);
    try {
      await Promise.race([this.#load(holding), holding.over.promise]);
      troubles.over(shard);
      return true;
    } catch (error) {
      if (!isRunning()) return false;
      report(`take over shard ${shard}`, error);
      if (holdings.stands(holding)) troubles.add(shard, error);
      // Another node may succeed.
      await holdings.giveUp(holding);
      return false;
    }
  }

  async #prepared(shard: ShardId): Promise<boolean> {
    const { clock, settings, ahead, troubles, isRunning, mayTake, report } = this.#ports;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const facts = { shard, ms: settings.prepareMs };
    const cancel = clock.after(settings.prepareMs, () => reject(new Fault("unavailable", "read shard", facts)));
    try {
      const reading = ahead.prepare(shard, "taking");
      reading.catch(() => {}); // it may fail after the wait for it has ended
      await Promise.race([reading, late]);
      return mayTake();
    } catch (error) {
      if (!isRunning()) return false;
      report(`take over shard ${shard}`, error);
      troubles.add(shard, error);
      return false;
    } finally {
      cancel();
    }
  }

  async #load(holding: Holding): Promise<void> {
    const { journal, replay: begin, host, holdings, ahead, isRunning } = this.#ports;
    const { shard, epoch, lease } = holding;
    // OW1: after this tail only this node can append.
    const tail = await journal.tail(shard);
    const replay = (await ahead.readOn(shard, tail.seq)) ?? (await begin(shard));
    await replay.readTo(tail.seq);
    if (!isRunning() || !holdings.stands(holding))
      throw new Fault("stale", "take over shard", { shard, epoch, why: "lost while its log was read" });
    await host.adopt({ shard, epoch, lease, state: replay.state, seq: replay.seq }, replay);
    holding.phase = "serving";
  }
}

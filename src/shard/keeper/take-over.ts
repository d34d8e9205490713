/** How shards come to be served here: a log is read ahead, the shard acquired, and the rest of its log read (OW1). */
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

  /** Gets ready for a shard that another node will let go of as soon as this has been done. */
  async expect(shard: ShardId): Promise<void> {
    const { holdings, ahead, arrivals, turns } = this.#ports;
    // An announcement may come twice, or late: what is here is not expected.
    if (holdings.all.has(shard)) return;
    await ahead.prepare(shard, "announced");
    // One at a time, and no other log is read meanwhile: each of them needs the loop for itself.
    await turns.hold(() => arrivals.wait(shard));
    if (holdings.all.has(shard)) return ahead.forget(shard);
    // The log has grown. What is left is read now, not when nobody serves the shard.
    await ahead.prepare(shard, "announced", "first");
  }

  /** True when the shard is served here. Asked for twice at once (a hand-over and a look around), it is taken once. */
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
    const { clock, node, journal, settings, storeClock, row } = this.#ports;
    const { holdings, ahead, troubles, isRunning, mayTake, report } = this.#ports;
    if (!mayTake()) return false;
    if (holdings.all.has(shard)) return holdings.all.get(shard)?.phase === "serving";
    // Read before it is acquired: however long that takes, it costs no lease and is not done in vain.
    if (!ahead.isAnnounced(shard) && !(await this.#prepared(shard))) return false;
    const sentMono = clock.monotonicMs();
    const wanted = { leaseMs: settings.leaseMs, features: row().features };
    const acquired = await journal.acquire(shard, node, wanted);
    storeClock.observe(acquired.storeNowMs, sentMono);
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
      // Another node may fare better.
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
      reading.catch(() => {}); // it may end after nobody waits for it any more
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
    // OW1: nobody can append behind this tail but us.
    const tail = await journal.tail(shard);
    const replay = (await ahead.readOn(shard, tail.seq)) ?? (await begin(shard));
    await replay.readTo(tail.seq);
    if (!isRunning() || !holdings.stands(holding))
      throw new Fault("stale", "take over shard", { shard, epoch, why: "lost while its log was read" });
    await host.adopt({ shard, epoch, lease, state: replay.state, seq: replay.seq }, replay);
    holding.phase = "serving";
  }
}

/** The shards that the node holds, and their leases: acquired, renewed, released, or expired (OW2). */
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Epoch, NodeId } from "#journal/journal.ts";
import { OwnerLease, type LossReason } from "#shard/host/shard.ts";
import type { KeeperPorts } from "./ports.ts";

export class Holding {
  readonly shard: ShardId;
  readonly epoch: Epoch;
  readonly lease: OwnerLease;
  phase: "loading" | "serving" | "leaving" = "loading";
  /** Rejects when the shard is given up, so that no caller waits for its log to be read. */
  readonly over = Promise.withResolvers<never>();

  constructor(shard: ShardId, epoch: Epoch, lease: OwnerLease) {
    this.shard = shard;
    this.epoch = epoch;
    this.lease = lease;
    this.over.promise.catch(() => {});
  }
}

export type HoldingsPorts = Pick<
  KeeperPorts,
  "node" | "clock" | "storeClocks" | "journal" | "settings" | "host" | "report"
> & {
  readonly isRunning: () => boolean;
  /** The shard may be free, and can be taken again. */
  readonly steppedDown: () => void;
};

export class Holdings {
  readonly #ports: HoldingsPorts;
  readonly #all = new Map<ShardId, Holding>();

  constructor(ports: HoldingsPorts) {
    this.#ports = ports;
  }

  get all(): ReadonlyMap<ShardId, Holding> {
    return this.#all;
  }

  /** False if it was given up in the meantime, even if the shard is held again. */
  stands(holding: Holding): boolean {
    return this.#all.get(holding.shard) === holding;
  }

  /** The shard was acquired by a request that was sent at `sentMono`. */
  add(shard: ShardId, epoch: Epoch, sentMono: number): Holding {
    const holding = new Holding(shard, epoch, new OwnerLease(this.#leaseFrom(sentMono)));
    this.#all.set(shard, holding);
    return holding;
  }

  /** The leases of the shards that lie in the database. */
  async renew(database = 0): Promise<void> {
    const { clock, node, journal, settings, storeClocks, isRunning } = this.#ports;
    const isThere = ({ shard }: Holding): boolean => (journal.partition?.databaseOf(shard) ?? 0) === database;
    const present = [...this.#all.values()].filter(isThere);
    const [first] = present;
    if (!first) return;
    const sentMono = clock.monotonicMs();
    const bounds = present.map(({ shard, epoch }) => ({ shard, epoch }));
    const { held, storeNowMs } = await journal.renew(node, bounds, settings.leaseMs);
    if (!isRunning()) return;
    storeClocks.of(first.shard).observe(storeNowMs, sentMono);
    const renewed = new Set(held);
    for (const holding of present) {
      if (!renewed.has(holding.shard)) this.#stepDown(holding, "fenced");
      // OW2: a lease that expired while the request was under way stays expired, although the journal says it was
      // renewed.
      else if (!holding.lease.standsAt(clock.monotonicMs())) this.#stepDown(holding, "lease");
      else holding.lease.untilMono = Math.max(holding.lease.untilMono, this.#leaseFrom(sentMono));
    }
  }

  /** Steps down from every shard whose lease has expired. */
  stepDownLapsed(): void {
    const { clock } = this.#ports;
    const lapsed = [...this.#all.values()].filter(({ lease }) => !lease.standsAt(clock.monotonicMs()));
    for (const holding of lapsed) this.#stepDown(holding, "lease");
  }

  /** Gives the shard up and releases it in the journal, if that can be reached; if not, the lease expires. */
  async giveUp(holding: Holding, heir?: { readonly node: NodeId; readonly reservedMs: number }, hint?: string) {
    const { host, journal, report } = this.#ports;
    const { shard, epoch } = holding;
    if (!this.stands(holding)) return;
    this.release(holding);
    host.drop(shard, heir ? "moved" : "stopped", hint);
    const released = journal.release(shard, epoch, heir);
    await released.catch((error: unknown) => report(`release shard ${shard}`, error));
  }

  /** Only here: neither the host nor the journal is told. */
  release(holding: Holding): void {
    this.#all.delete(holding.shard);
    holding.over.reject(new Fault("stale", "keep shard", { shard: holding.shard, epoch: holding.epoch }));
  }

  #stepDown(holding: Holding, why: LossReason): void {
    const { host, isRunning, report, steppedDown } = this.#ports;
    if (!isRunning() || !this.stands(holding)) return;
    report(`step down from shard ${holding.shard}`, new Fault("stale", "keep shard", { why }));
    this.release(holding);
    host.drop(holding.shard, why);
    steppedDown();
  }

  #leaseFrom(sentMono: number): number {
    const { leaseMs, driftShare } = this.#ports.settings;
    return sentMono + leaseMs * (1 - driftShare);
  }
}

/**
 * Keeps a large tenant away from the others: finds the shards of this node that are mostly its work, and has them move
 * to the node that is kept for it (ADR 0246). By rule it isolates a tenant, too, and takes it back.
 */
import type { ShardId } from "#base/ids.ts";
import type { IsolatedTenants } from "./actions/isolated-tenants.ts";
import type { ShardLoad } from "./shard-loads.ts";
import type { TenantShares } from "./tenant-loads.ts";

/** From this part of a shard's events on it is mostly the tenant's; below half of it, no longer. */
const mostly = 0.5;
/** A shard that takes less of the node's time is not worth a move. */
const loopShareMin = 0.01;
/** How often in a row that must be so before anything moves: half a minute, and five. */
const heavyLooks = 6;
const lightLooks = 60;

export type HeavyTenantPorts = {
  readonly node: string;
  readonly shards: () => number;
  readonly loads: () => ReadonlyMap<ShardId, ShardLoad>;
  readonly shares: () => ReadonlyMap<ShardId, TenantShares>;
  readonly tenants: Pick<IsolatedTenants, "all" | "isolate" | "join" | "leave" | "release">;
  /** Shards that are isolated for themselves: they stay where they are. */
  readonly isIsolated: (shard: ShardId) => boolean;
  /** The part of the node's time from which on a tenant is isolated by rule; undefined: never. */
  readonly isolateAt: number | undefined;
  readonly log: (line: string) => void;
};

export type TenantLoad = { readonly tenant: string; readonly loopShare: number };

export class HeavyTenants {
  readonly #ports: HeavyTenantPorts;
  #loads: readonly TenantLoad[] = [];
  /** In how many looks in a row something was so. */
  #looks = new Map<string, number>();

  constructor(ports: HeavyTenantPorts) {
    this.#ports = ports;
  }

  /** The part of this node's time that each tenant takes, the largest first. */
  get loads(): readonly TenantLoad[] {
    return this.#loads;
  }

  async look(): Promise<void> {
    const { loads, shares } = this.#ports;
    const sums = new Map<string, number>();
    for (const [shard, of] of shares())
      for (const [tenant, share] of of)
        sums.set(tenant, (sums.get(tenant) ?? 0) + share * (loads().get(shard)?.loopShare ?? 0));
    this.#loads = [...sums]
      .map(([tenant, loopShare]) => ({ tenant, loopShare }))
      .toSorted((a, b) => b.loopShare - a.loopShare);
    const before = this.#looks;
    this.#looks = new Map();
    const lasted = (what: string, looks: number): boolean => {
      const times = (before.get(what) ?? 0) + 1;
      if (times < looks) this.#looks.set(what, times);
      return times >= looks;
    };
    await this.#shardsOfTenants(lasted);
    await this.#byRule(lasted);
  }

  async #shardsOfTenants(lasted: (what: string, looks: number) => boolean): Promise<void> {
    const { tenants, loads, isIsolated, shards, log } = this.#ports;
    for (const [tenant, { node, shards: its }] of tenants.all)
      for (const [shard, { loopShare }] of loads()) {
        const share = this.#shareOf(tenant, shard);
        if (its.includes(shard)) {
          if (share >= mostly / 2 || !lasted(`light ${tenant} ${shard}`, lightLooks)) continue;
          log(`shard ${shard} is no longer mostly work of tenant ${tenant}: it may be placed anywhere again`);
          await tenants.leave(tenant, shard);
        } else if (share >= mostly && loopShare >= loopShareMin && !isIsolated(shard)) {
          if (!lasted(`heavy ${tenant} ${shard}`, heavyLooks)) continue;
          log(`shard ${shard} is mostly work of tenant ${tenant}: it belongs on ${node}`);
          await tenants.join(tenant, shard, Math.floor(shards() / 2));
        }
      }
  }

  async #byRule(lasted: (what: string, looks: number) => boolean): Promise<void> {
    const { node, tenants, loads, isIsolated, shards, isolateAt = Number.POSITIVE_INFINITY, log } = this.#ports;
    for (const [tenant, { by, node: home }] of tenants.all) {
      if (by !== "rule" || home !== node) continue;
      const isLight = (this.#loads.find((one) => one.tenant === tenant)?.loopShare ?? 0) < isolateAt / 2;
      if (!isLight || !lasted(`light ${tenant}`, lightLooks)) continue;
      log(`tenant ${tenant} takes little of this node's time now: its shards may be placed anywhere again`);
      await tenants.release(tenant);
    }
    for (const { tenant, loopShare } of this.#loads) {
      if (loopShare < isolateAt || tenants.all.has(tenant) || !lasted(`heavy ${tenant}`, heavyLooks)) continue;
      const its = [...loads().keys()]
        .filter((shard) => this.#shareOf(tenant, shard) >= mostly && !isIsolated(shard))
        .slice(0, Math.floor(shards() / 2));
      if (its.length === 0 || its.length === loads().size) continue; // nothing to be isolated from, here
      log(`tenant ${tenant} takes ${Math.round(loopShare * 100)} % of this node's time: this node is kept for it`);
      await tenants.isolate(tenant, { node, by: "rule", shards: its });
    }
  }

  #shareOf(tenant: string, shard: ShardId): number {
    return this.#ports.shares().get(shard)?.get(tenant) ?? 0;
  }
}

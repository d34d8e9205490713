/** Who may own a shard, decided from rows and the store's clock alone; every store applies these same rules (J4). */
import type { Acquired, Cluster, Epoch, NodeId, NodeSeen, Ownership } from "#journal/journal.ts";
import type { SeenRow, ShardRow } from "./tables.ts";

/** Nodes that have not been seen for this long are dropped from the list. */
export const nodeForgottenMs = 24 * 3600_000;

export type LeaseRequest = { readonly node: NodeId; readonly leaseMs: number; readonly features: number };

/** `row` is set if the shard changes owner. */
export function acquireLease(
  row: ShardRow,
  wanted: LeaseRequest,
  { featureLevel }: Pick<Cluster, "featureLevel">,
  storeNowMs: number,
): { readonly answer: Acquired; readonly row?: ShardRow } {
  const { node, leaseMs, features } = wanted;
  if (features < featureLevel) {
    const why = `node has feature level ${features}, the cluster writes ${featureLevel}`;
    return { answer: { kind: "refused", why, storeNowMs } };
  }
  const remainingMs = row.leaseUntilMs - storeNowMs;
  // A node that comes back under its own name need not wait for its old lease: the new epoch fences its earlier
  // process.
  if (row.owner !== null && row.owner !== node && remainingMs > 0)
    return { answer: { kind: "held", by: row.owner, epoch: row.epoch, remainingMs, storeNowMs } };
  if (row.reservedFor !== null && row.reservedFor !== node && row.reservedUntilMs > storeNowMs)
    return { answer: { kind: "refused", why: `reserved for ${row.reservedFor}`, storeNowMs } };
  const epoch = row.epoch + 1;
  return {
    answer: { kind: "acquired", epoch, storeNowMs },
    row: { ...row, epoch, owner: node, leaseUntilMs: storeNowMs + leaseMs, reservedFor: null, reservedUntilMs: 0 },
  };
}

/**
 * An expired lease that no node took is extended too: the epoch is still current, so no other owner answered meanwhile,
 * and an outage of the store does not move every shard.
 */
export function renewLease(
  row: ShardRow,
  holder: { readonly node: NodeId; readonly epoch: Epoch; readonly leaseMs: number },
  storeNowMs: number,
): ShardRow | undefined {
  if (row.owner !== holder.node || row.epoch !== holder.epoch) return undefined;
  return { ...row, leaseUntilMs: storeNowMs + holder.leaseMs };
}

/**
 * The epoch grows here as well: an append that the leaving owner still has in flight must not be accepted later (K8).
 */
export function releaseLease(
  row: ShardRow,
  epoch: Epoch,
  successor: { readonly node: NodeId; readonly reservedMs: number } | undefined,
  storeNowMs: number,
): ShardRow | undefined {
  if (row.epoch !== epoch || row.owner === null) return undefined;
  return {
    ...row,
    epoch: epoch + 1,
    owner: null,
    leaseUntilMs: 0,
    reservedFor: successor?.node ?? null,
    reservedUntilMs: successor ? storeNowMs + successor.reservedMs : 0,
  };
}

type Leased = Pick<ShardRow, "shard" | "epoch" | "owner" | "leaseUntilMs">;

export function ownershipsOf(rows: readonly Leased[], nodes: readonly SeenRow[], storeNowMs: number): Ownership[] {
  const addresses = new Map(nodes.map(({ node, address }) => [node, address]));
  return rows.map(({ shard, epoch, owner, leaseUntilMs }) => ({
    shard,
    epoch,
    owner: owner ?? undefined,
    address: owner === null ? undefined : addresses.get(owner),
    remainingMs: owner === null ? 0 : leaseUntilMs - storeNowMs,
  }));
}

export function seen({ seenAtMs, ttlMs, ...row }: SeenRow, storeNowMs: number): NodeSeen {
  const seenAgoMs = storeNowMs - seenAtMs;
  return { ...row, seenAgoMs, alive: seenAgoMs <= ttlMs };
}

/** The lowest level of all live nodes, or the present level if that is higher. */
export function raisedLevel(featureLevel: number, nodes: readonly NodeSeen[]): number {
  const live = nodes.filter(({ alive }) => alive).map(({ features }) => features);
  return live.length === 0 ? featureLevel : Math.max(featureLevel, Math.min(...live));
}

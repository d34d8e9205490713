/**
 * Which shards a node should own. Pure: the journal's tables in, what to do out.
 *
 * Every shard ranks all nodes, in an order that every node computes alike. A free shard goes to the highest ranked live
 * node with less than its share, so that nodes that see the same tables want different shards. A node that gives a
 * shard away gives the one that ranks the receiver highest. So shares stay even, a node that comes back gets mostly
 * what it had, and nothing else moves.
 */
import type { ShardId } from "#base/ids.ts";
import { hash32 } from "#base/random.ts";
import type { NodeId, NodeSeen, Ownership } from "#journal/journal.ts";

export type Standing = {
  readonly node: NodeId;
  readonly held: ReadonlySet<ShardId>;
  readonly ownerships: readonly Ownership[];
  readonly nodes: readonly NodeSeen[];
  /** In how many rounds in a row each shard was found free; left out: in none before. */
  readonly freeLooks?: ReadonlyMap<ShardId, number>;
  /** Shards that are to have a node of their own, and which; see ADR 0117. */
  readonly isolated?: ReadonlyMap<ShardId, NodeId>;
};

/** After this many rounds the node that should have taken the shard has not: any node may. */
const overdueLooks = 3;

/**
 * The free shards to take now, best first. Shards that still list this node as their owner (it was restarted, or
 * stepped down) come first, beyond its share too: no other node can serve them before their lease has expired.
 */
export function toTake(standing: Standing): readonly ShardId[] {
  const { node, held, ownerships } = standing;
  const homes = homesOf(standing);
  const notHeld = ownerships.filter(({ shard, unseen }) => !held.has(shard) && !unseen);
  const isFree = ({ owner, remainingMs }: Ownership): boolean => owner === undefined || remainingMs <= 0;
  const isOwn = (row: Ownership): boolean => row.owner === node || (homes.get(row.shard) === node && isFree(row));
  const own = notHeld.filter(isOwn).map(({ shard }) => shard);
  const free = notHeld.filter((row) => isFree(row) && !isOwn(row));
  const isCommon = (shard: ShardId): boolean => !homes.has(shard);
  const room = Math.max(0, shareOf(standing) - [...held, ...own].filter(isCommon).length);
  if (room === 0 || free.length === 0) return own;
  const rooms = roomsOf(standing).set(node, room);
  const shards = free.map(({ shard }) => shard);
  const mine = placed(shards.filter(isCommon), rooms).get(node) ?? [];
  const overdue = shards.filter((shard) => (standing.freeLooks?.get(shard) ?? 0) >= overdueLooks);
  return [...own, ...new Set([...mine, ...overdue])].slice(0, own.length + room);
}

/** How many more shards each live node should own. */
function roomsOf(standing: Standing): Map<NodeId, number> {
  const share = shareOf(standing);
  return new Map([...countsOf(standing)].map(([node, count]) => [node, Math.max(0, share - count)]));
}

/** How the shard ranks the node: less is better. */
const rank = (node: NodeId, shard: ShardId): number => hash32(`${node} ${shard}`);

/** Assigns each shard to the node that it ranks best and that is below its share; the best matches first. */
function placed(
  shards: readonly ShardId[],
  rooms: ReadonlyMap<NodeId, number>,
): ReadonlyMap<NodeId, readonly ShardId[]> {
  const open = [...rooms].filter(([, room]) => room > 0).map(([node]) => node);
  const pairs = shards.flatMap((shard) => open.map((node) => ({ shard, node, rank: rank(node, shard) })));
  pairs.sort((a, b) => a.rank - b.rank || a.shard - b.shard || (a.node < b.node ? -1 : 1));
  const given = new Map<NodeId, ShardId[]>(open.map((node) => [node, []]));
  const gone = new Set<ShardId>();
  for (const { shard, node } of pairs) {
    const its = given.get(node);
    if (!its || gone.has(shard) || its.length >= (rooms.get(node) ?? 0)) continue;
    its.push(shard);
    gone.add(shard);
  }
  return given;
}

/** What this node would have to take if the owners with less than `remainingMs` left stayed silent. */
export function toTakeSoon(standing: Standing, remainingMs: number): readonly ShardId[] {
  const { node, held } = standing;
  const fading = standing.ownerships.filter(
    (row) =>
      !row.unseen &&
      row.owner !== undefined &&
      row.owner !== node &&
      row.remainingMs > 0 &&
      row.remainingMs < remainingMs,
  );
  if (fading.length === 0) return [];
  const owners = new Set(fading.map(({ owner }) => owner));
  const nodes = standing.nodes.filter((row) => !owners.has(row.node));
  const without = { ...standing, nodes };
  const homes = homesOf(without);
  const common = [...held].filter((shard) => !homes.has(shard)).length;
  const rooms = roomsOf(without).set(node, Math.max(0, shareOf(without) - common));
  const shards = fading.map(({ shard }) => shard);
  return placed(shards, rooms).get(node) ?? [];
}

/** The next of the shards that this node serves to hand over, and to whom; undefined for none. */
export function nextMove(
  standing: Standing,
  serving: readonly ShardId[],
): { readonly shard: ShardId; readonly to: NodeId } | undefined {
  const homes = homesOf(standing);
  for (const shard of serving) {
    const to = homes.get(shard);
    if (to !== undefined && to !== standing.node) return { shard, to };
  }
  const to = moveTo(standing);
  const common = serving.filter((one) => !homes.has(one));
  const shard = to === undefined ? undefined : bestFor(to, common);
  return to === undefined || shard === undefined ? undefined : { shard, to };
}

/**
 * The node that has too few shards when this one has too many: the difference must be worth a move. A node with no more
 * than its share gives nothing; otherwise several nodes would give to a new one at once, and soon have to take some
 * back. A node that is kept for isolated shards gives all others away.
 */
export function moveTo(standing: Standing): NodeId | undefined {
  const { node, held } = standing;
  const homes = homesOf(standing);
  const isKept = new Set(homes.values()).has(node);
  const common = [...held].filter((shard) => !homes.has(shard)).length;
  if (common <= (isKept ? 0 : evenShareOf(standing))) return undefined;
  const counts = countsOf(standing);
  let least: { readonly node: NodeId; readonly count: number } | undefined;
  for (const [other, count] of counts)
    if (other !== node && (!least || count < least.count)) least = { node: other, count };
  return least && (isKept || common - least.count >= 2) ? least.node : undefined;
}

/** Of these shards, the one that ranks the node highest. */
export function bestFor(node: NodeId, shards: Iterable<ShardId>): ShardId | undefined {
  let best: ShardId | undefined;
  for (const shard of shards) if (best === undefined || rank(node, shard) < rank(node, best)) best = shard;
  return best;
}

/** Live nodes except this one, by how many shards they own, the emptiest first. */
export function successors(standing: Standing): readonly NodeId[] {
  const counts = countsOf(standing);
  // Where all others are kept for isolated shards, one of them must take the rest.
  const others = [...counts].some(([node]) => node !== standing.node)
    ? counts
    : countsOf({ ...standing, isolated: none });
  return [...others]
    .filter(([other]) => other !== standing.node)
    .toSorted(([a, ofA], [b, ofB]) => ofA - ofB || (a < b ? -1 : 1))
    .map(([other]) => other);
}

const shareOf = (standing: Standing): number => Math.ceil(evenShareOf(standing));

/** Of the shards that are not isolated, among the nodes that are not kept for such. */
function evenShareOf(standing: Standing): number {
  const homes = homesOf(standing);
  const kept = new Set(homes.values());
  if (kept.has(standing.node)) return 0;
  const live = new Set(liveNodes(standing)).add(standing.node);
  return (standing.ownerships.length - homes.size) / live.difference(kept).size;
}

/** How many shards that are not isolated each live node owns that is not kept for isolated ones. */
function countsOf(standing: Standing): ReadonlyMap<NodeId, number> {
  const homes = homesOf(standing);
  const kept = new Set(homes.values());
  const counts = new Map(
    liveNodes(standing)
      .filter((node) => !kept.has(node))
      .map((node) => [node, 0]),
  );
  for (const { shard, owner, remainingMs } of standing.ownerships) {
    if (homes.has(shard)) continue;
    const count = owner === undefined || remainingMs <= 0 ? undefined : counts.get(owner);
    if (owner !== undefined && count !== undefined) counts.set(owner, count + 1);
  }
  return counts;
}

const none: ReadonlyMap<ShardId, NodeId> = new Map();

/**
 * The isolated shards whose node is there. One node at least is left for the others: if every live node is named, the
 * isolation of the last shards has no effect.
 */
function homesOf(standing: Standing): ReadonlyMap<ShardId, NodeId> {
  const { isolated = none, node, ownerships } = standing;
  if (isolated.size === 0) return none;
  const live = new Set(liveNodes(standing)).add(node);
  const kept = new Set<NodeId>();
  const homes = new Map<ShardId, NodeId>();
  const known = new Set(ownerships.map(({ shard }) => shard));
  for (const [shard, home] of [...isolated].toSorted(([a], [b]) => a - b)) {
    if (!known.has(shard) || !live.has(home) || (!kept.has(home) && kept.size >= live.size - 1)) continue;
    kept.add(home);
    homes.set(shard, home);
  }
  return homes;
}

/**
 * A node that has been silent since its leases expired is not live, however long its last announcement was valid for.
 */
function liveNodes({ nodes, ownerships }: Standing): readonly NodeId[] {
  const lapsedAgoMs = new Map<NodeId, number>();
  for (const { owner, remainingMs, unseen } of ownerships)
    if (!unseen && owner !== undefined && remainingMs <= 0)
      lapsedAgoMs.set(owner, Math.max(lapsedAgoMs.get(owner) ?? 0, -remainingMs));
  return nodes
    .filter(({ alive, state, node, seenAgoMs }) => {
      const lapsed = lapsedAgoMs.get(node);
      return alive && state === "up" && (lapsed === undefined || seenAgoMs <= lapsed);
    })
    .map(({ node }) => node);
}

/** Which shards a node should own. Pure: what the journal's tables say in, what to do out. */
import type { ShardId } from "#base/ids.ts";
import { hash32 } from "#base/random.ts";
import type { NodeId, NodeSeen, Ownership } from "#journal/journal.ts";

export type Standing = {
  readonly node: NodeId;
  readonly held: ReadonlySet<ShardId>;
  readonly ownerships: readonly Ownership[];
  readonly nodes: readonly NodeSeen[];
};

/**
 * The free shards to take now, best first. What is still the node's own by name (it was restarted, or stepped down)
 * comes first and whatever its share: nobody else can serve it before its lease has run out.
 */
export function toTake(standing: Standing): readonly ShardId[] {
  const { node, held, ownerships } = standing;
  const notHeld = ownerships.filter(({ shard }) => !held.has(shard));
  const own = notHeld.filter(({ owner }) => owner === node).map(({ shard }) => shard);
  const free = notHeld.filter(({ owner, remainingMs }) => owner !== node && (owner === undefined || remainingMs <= 0));
  const room = Math.max(0, shareOf(standing) - held.size - own.length);
  const taken = ranked(node, free).slice(0, room);
  return [...own, ...taken.map(({ shard }) => shard)];
}

/** Each node in an order of its own, so that they do not all begin with the same. */
const ranked = (node: NodeId, rows: readonly Ownership[]): readonly Ownership[] =>
  rows
    .map((row) => ({ row, rank: hash32(`${node} ${row.shard}`) }))
    .toSorted((a, b) => a.rank - b.rank || a.row.shard - b.row.shard)
    .map(({ row }) => row);

/** What this node would have to take if the owners with less than `remainingMs` left said nothing more. */
export function toTakeSoon(standing: Standing, remainingMs: number): readonly ShardId[] {
  const { node, held } = standing;
  const fading = standing.ownerships.filter(
    (row) => row.owner !== undefined && row.owner !== node && row.remainingMs > 0 && row.remainingMs < remainingMs,
  );
  if (fading.length === 0) return [];
  const owners = new Set(fading.map(({ owner }) => owner));
  const nodes = standing.nodes.filter((row) => !owners.has(row.node));
  const room = Math.max(0, shareOf({ ...standing, nodes }) - held.size);
  return ranked(node, fading)
    .slice(0, room)
    .map(({ shard }) => shard);
}

/**
 * The node that has too few when this one has too many: the difference must be worth a move. One with no more than its
 * share gives nothing, or several that give at once to one that has just joined would soon have to take some back.
 */
export function moveTo(standing: Standing): NodeId | undefined {
  const { node, held } = standing;
  if (held.size <= evenShareOf(standing)) return undefined;
  const counts = countsOf(standing);
  let least: { readonly node: NodeId; readonly count: number } | undefined;
  for (const [other, count] of counts)
    if (other !== node && (!least || count < least.count)) least = { node: other, count };
  return least && held.size - least.count >= 2 ? least.node : undefined;
}

/** Live nodes by how many shards they own, the emptiest first, without this one. */
export function successors(standing: Standing): readonly NodeId[] {
  return [...countsOf(standing)]
    .filter(([other]) => other !== standing.node)
    .toSorted(([a, ofA], [b, ofB]) => ofA - ofB || (a < b ? -1 : 1))
    .map(([other]) => other);
}

const shareOf = (standing: Standing): number => Math.ceil(evenShareOf(standing));

function evenShareOf(standing: Standing): number {
  const live = new Set(liveNodes(standing)).add(standing.node);
  return standing.ownerships.length / live.size;
}

function countsOf(standing: Standing): ReadonlyMap<NodeId, number> {
  const counts = new Map(liveNodes(standing).map((node) => [node, 0]));
  for (const { owner, remainingMs } of standing.ownerships) {
    const count = owner === undefined || remainingMs <= 0 ? undefined : counts.get(owner);
    if (owner !== undefined && count !== undefined) counts.set(owner, count + 1);
  }
  return counts;
}

/** One that has said nothing since its leases ran out is not there, however long its last word was to count. */
function liveNodes({ nodes, ownerships }: Standing): readonly NodeId[] {
  const lapsedAgoMs = new Map<NodeId, number>();
  for (const { owner, remainingMs } of ownerships)
    if (owner !== undefined && remainingMs <= 0)
      lapsedAgoMs.set(owner, Math.max(lapsedAgoMs.get(owner) ?? 0, -remainingMs));
  return nodes
    .filter(({ alive, state, node, seenAgoMs }) => {
      const lapsed = lapsedAgoMs.get(node);
      return alive && state === "up" && (lapsed === undefined || seenAgoMs <= lapsed);
    })
    .map(({ node }) => node);
}

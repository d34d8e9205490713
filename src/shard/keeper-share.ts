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
  const ranked = free.map(({ shard }) => ({ shard, rank: hash32(`${node} ${shard}`) }));
  ranked.sort((a, b) => a.rank - b.rank || a.shard - b.shard);
  return [...own, ...ranked.slice(0, room).map(({ shard }) => shard)];
}

/** The node that has too few when this one has too many: the difference must be worth a move. */
export function moveTo(standing: Standing): NodeId | undefined {
  const { node, held } = standing;
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

function shareOf(standing: Standing): number {
  const live = new Set(liveNodes(standing)).add(standing.node);
  return Math.ceil(standing.ownerships.length / live.size);
}

function countsOf(standing: Standing): ReadonlyMap<NodeId, number> {
  const counts = new Map(liveNodes(standing).map((node) => [node, 0]));
  for (const { owner, remainingMs } of standing.ownerships) {
    const count = owner === undefined || remainingMs <= 0 ? undefined : counts.get(owner);
    if (owner !== undefined && count !== undefined) counts.set(owner, count + 1);
  }
  return counts;
}

const liveNodes = ({ nodes }: Standing): readonly NodeId[] =>
  nodes.filter(({ alive, state }) => alive && state === "up").map(({ node }) => node);

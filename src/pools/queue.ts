/** What the queues of all shards say, as far as pools are concerned: read whole every time, never counted along. */

/** Work of one tenant that is ready, may run by the tenant's quota, and asks for the same labels. */
export type Waiting = {
  readonly tenant: string;
  readonly requires: readonly string[];
  readonly count: number;
  /** For how long the first of it has been ready. */
  readonly oldestForMs: number;
  /** The first of its tasks. */
  readonly tasks: readonly string[];
};

export type HeldTask = { readonly task: string; readonly token: number; readonly tenant: string };

/** A worker whose name begins as those of pools do. */
export type PoolWorker = { readonly name: string; readonly holds: readonly HeldTask[] };

export type Queue = { readonly waiting: readonly Waiting[]; readonly workers: readonly PoolWorker[] };

/** Names of workers of pools begin with this; the rest is the machine's, and an id that the cluster gives. */
export const workerPrefix = "pool.";

/** Of a machine, by which its worker is known whatever id it gets. `nonce` tells machines of one slot apart. */
export const workerName = (pool: string, slot: number, nonce: string): string =>
  `${workerPrefix}${pool}.${slot}.${nonce}`;

/** The answers of several nodes as one. A worker is known to many shards, and holds what any of them says. */
export function joined(parts: readonly Queue[]): Queue {
  const workers = new Map<string, HeldTask[]>();
  for (const { name, holds } of parts.flatMap((part) => part.workers)) {
    const known = workers.get(name) ?? [];
    workers.set(name, known);
    for (const held of holds)
      if (!known.some(({ task, token }) => task === held.task && token === held.token)) known.push(held);
  }
  return {
    waiting: parts.flatMap(({ waiting }) => waiting),
    workers: [...workers].map(([name, holds]) => ({ name, holds })),
  };
}

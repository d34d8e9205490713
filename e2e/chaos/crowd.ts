/** Fills shards with live tasks: queued ones that no executor can run, and claimed ones whose executor is silent. */
import type { WorkClient } from "#shard/client/client.ts";
import { shardOf } from "#shard/client/client.ts";
import { idleLabel, idleOrder } from "./work.ts";

export type Crowd = {
  /** In each shard. */
  readonly tasks: number;
  /** The share of the tasks that are jobs of their own; the others are in jobs of a thousand. */
  readonly singles: number;
  /** The share that is claimed. */
  readonly claimed: number;
};

const wide = 1_000;
const atOnce = 200;

export async function fill(client: WorkClient, shards: number, { tasks, singles, claimed }: Crowd): Promise<void> {
  const orders: (() => Promise<unknown>)[] = [];
  for (let shard = 0; shard < shards; shard += 1) {
    const keys = keysOf(shard, shards);
    const single = Math.round(tasks * singles);
    const next = (count: number) => {
      const order = idleOrder(keys.next().value, count);
      return () => client.submit(order, { deadlineMs: 60_000 });
    };
    for (let left = tasks - single; left > 0; left -= wide) orders.push(next(Math.min(wide, left)));
    for (let i = 0; i < single; i += 1) orders.push(next(1));
  }
  await inLanes(atOnce, orders);
  const claims: (() => Promise<unknown>)[] = [];
  for (let shard = 0; shard < shards; shard += 1)
    for (let left = Math.round(tasks * claimed), part = 0; left > 0; left -= wide, part += 1) {
      const wanted = {
        executor: `silent-${shard}-${part}`,
        offers: [idleLabel],
        count: Math.min(wide, left),
        start: true,
      };
      claims.push(() => client.reserve(shard, wanted, { deadlineMs: 60_000 }));
    }
  await inLanes(4, claims);
}

/** Live tasks in these shards, as their owners report. */
export async function countLive(client: WorkClient, shards: readonly number[]): Promise<number> {
  const stats = await Promise.all(shards.map((shard) => client.stats(shard)));
  return stats.reduce((sum, { ready, claims }) => sum + ready + claims, 0);
}

function* keysOf(shard: number, shards: number): Generator<string, never> {
  for (let i = 0; ; i += 1) if (shardOf(`idle-${i}`, shards) === shard) yield `idle-${i}`;
}

async function inLanes(lanes: number, work: readonly (() => Promise<unknown>)[]): Promise<void> {
  const left = work.values();
  const lane = async (): Promise<void> => {
    for (const each of left) await each();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

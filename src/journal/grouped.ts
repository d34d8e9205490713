/**
 * Appends that arrive during another append go together in the next one: one commit pays for all of them. Each call
 * still gets its own answer, and an invalid call fails alone.
 */
import { isFault } from "#base/fault.ts";
import { checkBatches } from "./engine/guards.ts";
import type { AppendResult, Batch } from "./journal.ts";

export type Append = (batches: readonly Batch[]) => Promise<AppendResult>;

type Waiting = {
  readonly batches: readonly Batch[];
  readonly resolve: (result: AppendResult) => void;
  readonly reject: (error: unknown) => void;
};

const groupBytesMax = 8 << 20;

export function grouped(append: Append): Append {
  let waiting: Waiting[] = [];
  let running = false;

  async function run(): Promise<void> {
    running = true;
    // Let callers whose promise just settled append again before the next group is formed.
    for (; waiting.length > 0; await Promise.resolve()) {
      const { group, rest } = nextGroup(waiting);
      waiting = rest;
      await commit(group);
    }
    running = false;
  }

  async function commit(group: readonly Waiting[]): Promise<void> {
    try {
      const { outcomes, storeNowMs } = await append(group.flatMap(({ batches }) => batches));
      let from = 0;
      for (const { batches, resolve } of group) {
        resolve({ outcomes: outcomes.slice(from, from + batches.length), storeNowMs });
        from += batches.length;
      }
    } catch (error) {
      const refused = isFault(error, "invalid") || isFault(error, "not-found");
      if (group.length > 1 && refused) for (const call of group) await commit([call]);
      else for (const { reject } of group) reject(error);
    }
  }

  return async (batches) => {
    checkBatches(batches);
    const { promise, resolve, reject } = Promise.withResolvers<AppendResult>();
    waiting.push({ batches, resolve, reject });
    if (!running) void run();
    return await promise;
  };
}

/** In order of arrival, until a shard would occur twice or the group gets too big. */
function nextGroup(waiting: readonly Waiting[]): { group: readonly Waiting[]; rest: Waiting[] } {
  const shards = new Set<number>();
  let sizeBytes = 0;
  let taken = 0;
  for (const { batches } of waiting) {
    if (taken > 0 && (sizeBytes > groupBytesMax || batches.some(({ shard }) => shards.has(shard)))) break;
    for (const { shard, payload } of batches) {
      shards.add(shard);
      sizeBytes += payload.length;
    }
    taken += 1;
  }
  return { group: waiting.slice(0, taken), rest: waiting.slice(taken) };
}

import { equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import { isFault, type FaultCode } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { AppendResult, Batch, Epoch, Journal, LogRecord, RequestKey, Seq } from "#journal/journal.ts";

/** One store under test. Its time moves only when the test says so, or with the wall clock. */
export type StoreUnderTest = {
  /** Another connection, as a second node would have; not yet opened. */
  readonly connect: () => Promise<Journal>;
  readonly advance: (ms: number) => void;
  /** Damages stored data directly, bypassing the journal. */
  readonly tamper: {
    readonly flipRecord: (shard: ShardId, seq: Seq, bit: number) => Promise<void>;
    readonly dropRecord: (shard: ShardId, seq: Seq) => Promise<void>;
    readonly flipChunk: (shard: ShardId, index: number, bit: number) => Promise<void>;
  };
  /** Removes the store; its connections have been closed. */
  readonly destroy: () => Promise<void>;
};

export type MakeStore = () => Promise<StoreUnderTest>;

export type Scene = StoreUnderTest & {
  /** Opens a connection that the scene closes at its end. */
  readonly node: () => Promise<Journal>;
  readonly journal: Journal;
};

export const shards = 8;

export function scene(makeStore: MakeStore, name: string, play: (scene: Scene) => Promise<void>): void {
  void test(name, async () => {
    const store = await makeStore();
    const opened: Journal[] = [];
    const node = async (): Promise<Journal> => {
      const journal = await store.connect();
      opened.push(journal);
      await journal.open({ shards, clusterId: "under-test" });
      return journal;
    };
    try {
      await play({ ...store, node, journal: await node() });
    } finally {
      for (const journal of opened) await journal.close();
      await store.destroy();
    }
  });
}

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const text = (payload: Uint8Array): string => new TextDecoder().decode(payload);

export const batch = (shard: ShardId, epoch: Epoch, seq: Seq, keys: readonly RequestKey[] = []): Batch => ({
  shard,
  epoch,
  seq,
  payload: bytes(`shard ${shard} seq ${seq} under ${epoch}`),
  keys,
});

export async function own(journal: Journal, shard: ShardId, node = "ada", leaseMs = 10_000): Promise<Epoch> {
  const acquired = await journal.acquire(shard, node, { leaseMs, features: 1 });
  if (acquired.kind !== "acquired") throw new Error(`${node} did not get shard ${shard}: ${acquired.kind}`);
  return acquired.epoch;
}

/** Appends `count` batches one after the other, as a shard's host does. */
export async function fill(
  journal: Journal,
  { shard, epoch, from = 1, count }: { shard: ShardId; epoch: Epoch; from?: Seq; count: number },
): Promise<void> {
  for (let seq = from; seq < from + count; seq += 1)
    equal(only(await journal.append([batch(shard, epoch, seq)])), "appended");
}

export const only = ({ outcomes }: AppendResult): string => {
  equal(outcomes.length, 1);
  return outcomes[0] ?? "";
};

export async function readAll(journal: Journal, shard: ShardId, fromSeq = 1): Promise<LogRecord[]> {
  const records: LogRecord[] = [];
  for await (const record of journal.read(shard, fromSeq)) records.push(record);
  return records;
}

export const seqs = (records: readonly LogRecord[]): Seq[] => records.map(({ seq }) => seq);

export const faults = (promise: Promise<unknown>, code: FaultCode): Promise<void> =>
  rejects(promise, (error) => {
    if (isFault(error, code)) return true;
    throw new Error(`expected a fault "${code}"`, { cause: error });
  });

export async function* chunked(...chunks: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield bytes(chunk);
}

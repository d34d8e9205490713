/**
 * Saves a snapshot chunk by chunk and switches to it in one last step, so that the old one stays valid until then. The
 * chunks form a chain of records; the pointer holds the last hash, which covers all of them.
 */
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Pointer, SnapshotAt } from "./engine-snapshots.ts";
import type { Snapshot } from "#journal/journal.ts";
import { decodeRecord, encodeRecord, recordHash } from "#journal/record.ts";
import type { ChunkRow } from "./tables.ts";

export type SnapshotStore = {
  begin(shard: ShardId, at: SnapshotAt): Promise<number>;
  put(at: ChunkRow, record: Uint8Array): Promise<void>;
  commit(shard: ShardId, pointer: Pointer): Promise<void>;
  /** Drops some chunks that no snapshot needs; returns how many. */
  sweep(shard: ShardId): Promise<number>;
  pointer(shard: ShardId): Promise<Pointer | undefined>;
  chunk(at: ChunkRow): Promise<Uint8Array | undefined>;
};

export async function saveSnapshot(
  store: SnapshotStore,
  shard: ShardId,
  at: SnapshotAt,
  chunks: AsyncIterable<Uint8Array>,
): Promise<void> {
  const { epoch, seq } = at;
  const id = await store.begin(shard, at);
  await sweepAll(store, shard);
  let hash = 0;
  let index = 0;
  for await (const payload of chunks) {
    const body = { shard, epoch, seq, payload };
    await store.put({ shard, snapshot: id, index }, encodeRecord(body, hash, "chunk"));
    // Shard, epoch and seq are the same in every chunk: the link makes a chunk's position part of the next one's
    // checksum.
    hash = (recordHash(body) ^ Math.imul(hash, 0x9e3779b1)) >>> 0;
    index += 1;
  }
  await store.commit(shard, { id, epoch, seq, chunks: index, hash });
  await sweepAll(store, shard);
}

export async function loadSnapshot(store: SnapshotStore, shard: ShardId): Promise<Snapshot | undefined> {
  const pointer = await store.pointer(shard);
  if (!pointer) return undefined;
  return { seq: pointer.seq, epoch: pointer.epoch, chunks: readChunks(store, shard, pointer) };
}

async function* readChunks(store: SnapshotStore, shard: ShardId, pointer: Pointer): AsyncGenerator<Uint8Array> {
  const { id, seq } = pointer;
  let link = 0;
  for (let index = 0; index < pointer.chunks; index += 1) {
    const record = await store.chunk({ shard, snapshot: id, index });
    if (!record) {
      const replaced = (await store.pointer(shard))?.id !== id;
      const facts = { shard, seq, index };
      if (replaced) throw new Fault("unavailable", "read snapshot", { ...facts, why: "replaced while it was read" });
      throw new Fault("corrupt", "read snapshot", { ...facts, why: "chunk missing" });
    }
    const { payload, hash } = decodeRecord(record, { kind: "chunk", shard, seq, link });
    link = (hash ^ Math.imul(link, 0x9e3779b1)) >>> 0;
    // The last chunk is held back until the whole snapshot is verified.
    if (index === pointer.chunks - 1 && link !== pointer.hash)
      throw new Fault("corrupt", "read snapshot", { shard, seq, why: "not the chunks that were saved" });
    yield payload;
  }
}

async function sweepAll(store: SnapshotStore, shard: ShardId): Promise<void> {
  while ((await store.sweep(shard)) > 0);
}

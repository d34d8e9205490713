/**
 * Snapshots that stay beside the archived log: who reads the log from a batch long ago begins at the one before it, not
 * at the first batch. A journal has only its newest snapshot, so the archiver copies it into the store before the next
 * one takes its place. Snapshots are taken when as much log has come as the state is large: what is kept at most
 * doubles the archive.
 */
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Journal, Seq } from "#journal/journal.ts";
import { digestOf } from "#shard/codec/segment.ts";

export type KeptState = {
  readonly seq: Seq;
  /** A blob that lists the blobs with its bytes, in order. */
  readonly digest: string;
};

export type KeptStatePorts = {
  readonly journal: Pick<Journal, "loadSnapshot" | "records">;
  readonly blobs: Pick<BlobStore, "read" | "write" | "pin">;
  /** How long it stays. */
  readonly keepMs: number;
};

/** The records belong to the cluster, so to no tenant. */
const recordOf = (shard: ShardId) => ({ tenant: "millrace", kind: "log.states", name: String(shard) });
/** So many are listed for a shard; of more, every second of the older half is left out. */
const keptMax = 400;
const partBytes = 1024 * 1024;
const triesMax = 20;

/** Keeps the journal's newest snapshot of the shard, unless it is kept already. */
export async function keepState(ports: KeptStatePorts, shard: ShardId): Promise<void> {
  const snapshot = await ports.journal.loadSnapshot(shard);
  if (!snapshot) return;
  const known = await keptStates(ports.journal, shard);
  if ((known.at(-1)?.seq ?? 0) >= snapshot.seq) return;
  const parts: string[] = [];
  for await (const part of partsOf(snapshot.chunks)) parts.push(await stored(ports, part));
  const digest = await stored(ports, Buffer.from(JSON.stringify(parts)));
  await list(ports.journal, shard, { seq: snapshot.seq, digest });
}

/** Oldest first. */
export async function keptStates(journal: Pick<Journal, "records">, shard: ShardId): Promise<readonly KeptState[]> {
  const record = await journal.records.read(recordOf(shard));
  return record ? parsed(shard, record.document) : [];
}

/** The chunks of the snapshot; a Fault if a part of it is gone or damaged. */
export async function* readState(
  blobs: Pick<BlobStore, "read">,
  shard: ShardId,
  { digest }: KeptState,
): AsyncGenerator<Uint8Array> {
  const parts = JSON.parse((await whole(blobs, shard, digest)).toString("utf8")) as readonly string[];
  for (const part of parts) yield await whole(blobs, shard, part);
}

/** The bytes of a blob that `stored` has written, so at most a part and one chunk long. */
async function whole(blobs: Pick<BlobStore, "read">, shard: ShardId, digest: string): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of blobs.read(digest)) pieces.push(Uint8Array.from(piece)); // the store reuses the memory
  const bytes = Buffer.concat(pieces);
  const found = digestOf(bytes);
  if (found !== digest) throw new Fault("corrupt", "read a kept state", { shard, digest, found });
  return bytes;
}

async function stored({ blobs, keepMs }: KeptStatePorts, bytes: Buffer): Promise<string> {
  const digest = digestOf(bytes);
  await blobs.write(digest, bytes);
  const pin = await blobs.pin([digest], keepMs);
  if ("missing" in pin) throw new Fault("not-found", "pin a kept state", { digest });
  return digest;
}

async function* partsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let part: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    part.push(chunk);
    bytes += chunk.length;
    if (bytes < partBytes) continue;
    yield Buffer.concat(part);
    part = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(part);
}

/** An owner that was replaced meanwhile may list the same state: equal logs make equal states. */
async function list({ records }: Pick<Journal, "records">, shard: ShardId, kept: KeptState): Promise<void> {
  const id = recordOf(shard);
  for (let tries = 0; tries < triesMax; tries += 1) {
    const record = await records.read(id);
    const before = record ? parsed(shard, record.document) : [];
    const all = [...before.filter(({ seq }) => seq !== kept.seq), kept].toSorted((a, b) => a.seq - b.seq);
    const document = JSON.stringify(thinned(all));
    if (record ? await records.replace(id, record.version, document) : (await records.create(id, document)).created)
      return;
  }
  throw new Fault("unavailable", "keep a state", { shard, why: "others change its record all the time" });
}

/** The older half loses every second one: how far apart they are grows with their age, their number does not. */
export function thinned(states: readonly KeptState[], max = keptMax): readonly KeptState[] {
  if (states.length <= max) return states;
  const half = states.length >> 1;
  return states.filter((_, i) => i >= half || i % 2 === 0);
}

function parsed(shard: ShardId, document: string): readonly KeptState[] {
  try {
    return JSON.parse(document) as readonly KeptState[];
  } catch (cause) {
    throw new Fault("corrupt", "read the list of kept states", { shard }, cause);
  }
}

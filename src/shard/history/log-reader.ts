/** Reads a shard's log from any batch on: what was archived from its segments, the rest from the journal (J5). */
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Journal, LogRecord, Segment, Seq } from "#journal/journal.ts";
import { decodeLines, digestOf } from "#shard/codec/segment.ts";

export type LogPorts = {
  readonly journal: Pick<Journal, "segments" | "read">;
  readonly blobs: Pick<BlobStore, "read">;
};

/** Every batch from `from` to the tail, each exactly once, in order; a Fault if one is missing. */
export async function* readLog(
  ports: LogPorts,
  shard: ShardId,
  { from, tailSeq }: { readonly from: Seq; readonly tailSeq: Seq },
): AsyncGenerator<LogRecord> {
  let next = from;
  while (next <= tailSeq) {
    for await (const record of archived(ports, shard, next)) {
      if (record.seq > tailSeq) return;
      yield record;
      next = record.seq + 1;
    }
    if (next > tailSeq) return;
    try {
      for await (const record of ports.journal.read(shard, next)) {
        if (record.seq > tailSeq) return;
        yield record;
        next = record.seq + 1;
      }
    } catch (error) {
      // Archived and trimmed since the segments were listed: go on there.
      if (isFault(error, "not-found") && (await isCovered(ports, shard, next))) continue;
      throw error;
    }
    if (next <= tailSeq)
      throw new Fault("corrupt", "read log", { shard, why: "the log ends before its tail", seq: next, tail: tailSeq });
  }
}

const isCovered = async ({ journal }: LogPorts, shard: ShardId, seq: Seq): Promise<boolean> =>
  ((await journal.segments(shard)).at(-1)?.throughSeq ?? 0) >= seq;

async function* archived(ports: LogPorts, shard: ShardId, from: Seq): AsyncGenerator<LogRecord> {
  let next = from;
  for (const segment of await ports.journal.segments(shard)) {
    const { fromSeq, throughSeq, digest } = segment;
    if (throughSeq < next) continue;
    if (fromSeq > next)
      throw new Fault("not-found", "read log segment", { shard, missing: next, fromSeq, throughSeq, digest });
    const bytes = await readSegment(ports.blobs, segment);
    try {
      for (const record of decodeLines(bytes, segment)) if (record.seq >= next) yield record;
    } catch (cause) {
      throw isFault(cause) ? unreadable(segment, cause) : cause;
    }
    next = throughSeq + 1;
  }
}

async function readSegment(blobs: Pick<BlobStore, "read">, segment: Segment): Promise<Uint8Array> {
  const { digest, sizeBytes } = segment;
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const part of blobs.read(digest)) {
      parts.push(Uint8Array.from(part)); // the store reuses the memory when the next part is requested
      bytes += part.length;
      if (bytes > sizeBytes) break;
    }
  } catch (cause) {
    throw isFault(cause) ? unreadable(segment, cause) : cause;
  }
  const whole = Buffer.concat(parts);
  const found = digestOf(whole);
  if (found !== digest) throw unreadable(segment, new Fault("corrupt", "verify log segment", { digest, found }));
  return whole;
}

const unreadable = ({ shard, fromSeq, throughSeq, digest }: Segment, cause: Fault): Fault =>
  new Fault(cause.code, "read log segment", { shard, fromSeq, throughSeq, digest }, cause);

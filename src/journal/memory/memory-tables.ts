import { must } from "#base/assert.ts";
import type { ShardId } from "#base/ids.ts";
import type { Cluster, NodeId, RequestKey, Segment, Seq, Tail } from "#journal/journal.ts";
import type { SeenRow, ShardRow, StoredRecord, Tables } from "#journal/engine/tables.ts";

type Kept = StoredRecord & Tail;
type Shelf = {
  row: ShardRow;
  /** In order; `log[0]` is the oldest record kept. */
  log: Kept[];
  readonly keys: Map<string, RequestKey>;
  readonly chunks: Map<string, { readonly snapshot: number; readonly record: Uint8Array }>;
  readonly segments: Segment[];
};

export type Tamper = {
  /** Flips one bit of a stored record, as a bad disk would. */
  flipRecord(shard: ShardId, seq: Seq, bit: number): void;
  dropRecord(shard: ShardId, seq: Seq): void;
  flipChunk(shard: ShardId, index: number, bit: number): void;
};

export function memoryTables(): Tables & { readonly tamper: Tamper } {
  let cluster: Cluster | undefined;
  const shelves = new Map<ShardId, Shelf>();
  const nodes = new Map<NodeId, SeenRow>();
  const shelf = (shard: ShardId): Shelf => must(shelves.get(shard), `shard ${shard}`);
  const indexOf = (log: readonly Kept[], seq: Seq): number => lowerBound(log, seq);

  return {
    cluster: () => cluster,
    putCluster: (row) => void (cluster = row),

    shard: (shard) => shelves.get(shard)?.row,
    shards: () => [...shelves.values()].map(({ row }) => row),
    putShard(row) {
      const known = shelves.get(row.shard);
      if (known) known.row = row;
      else shelves.set(row.shard, { row, log: [], keys: new Map(), chunks: new Map(), segments: [] });
    },

    newest: (shard) => shelf(shard).log.at(-1),
    record(shard, seq) {
      const { log } = shelf(shard);
      const found = log[indexOf(log, seq)];
      return found?.seq === seq ? found.record.slice() : undefined;
    },
    page(shard, fromSeq, bytesMax) {
      const { log } = shelf(shard);
      const rows: StoredRecord[] = [];
      let sizeBytes = 0;
      for (let i = indexOf(log, fromSeq); i < log.length && sizeBytes < bytesMax; i += 1) {
        const { seq, record } = must(log[i], "record in the log");
        rows.push({ seq, record: record.slice() });
        sizeBytes += record.length;
      }
      return rows;
    },
    putRecord: (shard, { epoch, seq, hash }, record) => void shelf(shard).log.push({ epoch, seq, hash, record }),
    dropRecords(shard, throughSeq) {
      const kept = shelf(shard);
      kept.log = kept.log.slice(indexOf(kept.log, throughSeq + 1));
    },

    key: (shard, key) => shelf(shard).keys.get(key),
    putKey: (shard, key) => void shelf(shard).keys.set(key.key, key),
    dropKeys(shard, untilMs, limit) {
      const { keys } = shelf(shard);
      let dropped = 0;
      for (const { key, retainedUntilMs } of keys.values()) {
        if (dropped >= limit) break;
        if (retainedUntilMs > untilMs) continue;
        keys.delete(key);
        dropped += 1;
      }
      return dropped;
    },

    chunk: ({ shard, snapshot, index }) => shelf(shard).chunks.get(`${snapshot}/${index}`)?.record.slice(),
    putChunk({ shard, snapshot, index }, record) {
      shelf(shard).chunks.set(`${snapshot}/${index}`, { snapshot, record });
    },
    dropChunks(shard, keep, limit) {
      const { chunks } = shelf(shard);
      const orphans = [...chunks].filter(([, { snapshot }]) => !keep.includes(snapshot)).slice(0, limit);
      for (const [name] of orphans) chunks.delete(name);
      return orphans.length;
    },

    segments: (shard) => shelf(shard).segments.slice(),
    putSegment: (segment) => void shelf(segment.shard).segments.push(segment),

    nodes: () => [...nodes.values()],
    putNode: (row) => void nodes.set(row.node, row),
    dropNodes(seenBeforeMs) {
      for (const { node, seenAtMs } of nodes.values()) if (seenAtMs < seenBeforeMs) nodes.delete(node);
    },

    tamper: {
      flipRecord(shard, seq, bit) {
        const { log } = shelf(shard);
        const at = indexOf(log, seq);
        const found = must(log[at], "record to tamper with");
        log[at] = { ...found, record: flipped(found.record, bit) };
      },
      dropRecord(shard, seq) {
        const kept = shelf(shard);
        kept.log = kept.log.filter((record) => record.seq !== seq);
      },
      flipChunk(shard, index, bit) {
        const { chunks, row } = shelf(shard);
        const name = `${row.snapshotId}/${index}`;
        const found = must(chunks.get(name), "chunk to tamper with");
        chunks.set(name, { ...found, record: flipped(found.record, bit) });
      },
    },
  };
}

export function flipped(bytes: Uint8Array, bit: number): Uint8Array {
  const copy = bytes.slice();
  const at = (bit >> 3) % copy.length;
  copy[at] = must(copy[at], "byte to flip") ^ (1 << (bit & 7));
  return copy;
}

/** Index of the first record at or after `seq`. */
function lowerBound(log: readonly Kept[], seq: Seq): number {
  let low = 0;
  let high = log.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (must(log[middle], "record in the log").seq < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

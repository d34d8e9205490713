/** Snapshots, archived segments, trimming and request keys in PostgreSQL. */
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Pointer } from "./engine.ts";
import * as guards from "./guards.ts";
import type { Journal, RequestKey, Segment, Seq, Tail } from "./journal.ts";
import { storeNow } from "./postgres-append.ts";
import type { Run } from "./postgres-lane.ts";
import type { Ports } from "./postgres-ownership.ts";
import { lockedShard, putShard, shardRowOf } from "./postgres-rows.ts";
import { utf8Array } from "./postgres-values.ts";
import { decodeRecord } from "./record.ts";
import { loadSnapshot, saveSnapshot, type SnapshotStore } from "./snapshots.ts";
import { baseOf, type ShardRow } from "./tables.ts";

type Kept = Pick<
  Journal,
  "saveSnapshot" | "loadSnapshot" | "recordSegment" | "segments" | "trim" | "findKeys" | "trimKeys"
>;

const sweepChunksMax = 16;
const trimRecordsMax = 512;

export function keptIn({ lane, schema, offsetMs }: Ports): Kept {
  const locked = (run: Run, shard: ShardId, doing: string): Promise<{ row: ShardRow }> =>
    lockedShard(run, { schema, shard, offsetMs: offsetMs(), doing });
  const record = async (run: Run, shard: ShardId, seq: Seq): Promise<Tail> => {
    const [found] = await run<{ record: Uint8Array }>({
      text: `select record from ${schema}.log where shard = $1::int4 and seq = $2::int8`,
      values: [shard, seq],
    });
    const { epoch, hash } = decodeRecord(found?.record ?? new Uint8Array(), {
      kind: "batch",
      shard,
      seq,
      link: undefined,
    });
    return { epoch, seq, hash };
  };
  const tailOf = async (run: Run, row: ShardRow): Promise<Tail> => {
    const [found] = await run<{ seq: number | null }>({
      text: `select max(seq) as seq from ${schema}.log where shard = $1::int4`,
      values: [row.shard],
    });
    const seq = found?.seq ?? null;
    return guards.checkTail(row, seq === null ? baseOf(row) : await record(run, row.shard, seq));
  };
  const segmentsOf = async (run: Run, shard: ShardId): Promise<Segment[]> =>
    await run<Segment>({
      text: `select shard, from_seq as "fromSeq", through_seq as "throughSeq", digest, size_bytes as "sizeBytes"
        from ${schema}.segments where shard = $1::int4 order by from_seq`,
      values: [shard],
    });
  const store: SnapshotStore = {
    begin: (shard, at) =>
      lane.transaction("save snapshot", async (run) => {
        const { row } = await locked(run, shard, "save snapshot");
        guards.checkSnapshot(row, at, await tailOf(run, row));
        const attemptId = Math.max(row.attemptId, row.snapshotId) + 1;
        await putShard(run, schema, { ...row, attemptId });
        return attemptId;
      }),
    async put({ shard, snapshot, index }, bytes) {
      const rows = await lane.write("save snapshot", {
        name: "put-chunk",
        text: `insert into ${schema}.chunks (shard, snapshot, index, record)
          select $1::int4, $2::int8, $3::int4, $4::bytea
          where exists (select from ${schema}.shards where shard = $1 and attempt_id = $2) returning index`,
        values: [shard, snapshot, index, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)],
      });
      if (rows.length === 0) throw overtaken(shard);
    },
    commit: (shard, pointer) =>
      lane.transaction("save snapshot", async (run) => {
        const { row } = await locked(run, shard, "save snapshot");
        guards.checkSnapshot(row, pointer, await tailOf(run, row));
        if (row.attemptId !== pointer.id) throw overtaken(shard);
        const {
          id: snapshotId,
          seq: snapshotSeq,
          epoch: snapshotEpoch,
          chunks: snapshotChunks,
          hash: snapshotHash,
        } = pointer;
        await putShard(run, schema, { ...row, snapshotId, snapshotSeq, snapshotEpoch, snapshotChunks, snapshotHash });
      }),
    async sweep(shard) {
      const rows = await lane.write("sweep snapshots", {
        text: `delete from ${schema}.chunks c using ${schema}.shards s where s.shard = c.shard and c.ctid = any (array(
            select o.ctid from ${schema}.chunks o join ${schema}.shards p using (shard)
            where o.shard = $1::int4 and o.snapshot <> p.snapshot_id and o.snapshot <> p.attempt_id limit $2::int4))
          and c.snapshot <> s.snapshot_id and c.snapshot <> s.attempt_id returning c.index`,
        values: [shard, sweepChunksMax],
      });
      return rows.length;
    },
    async pointer(shard) {
      const [found] = await lane.read("load snapshot", {
        text: `select * from ${schema}.shards where shard = $1::int4`,
        values: [shard],
      });
      if (!found) throw guards.unknownShard("load snapshot", shard);
      return pointerOf(shardRowOf(found));
    },
    async chunk({ shard, snapshot, index }) {
      const [found] = await lane.read<{ record: Uint8Array }>("load snapshot", {
        name: "chunk",
        text: `select record from ${schema}.chunks where shard = $1::int4 and snapshot = $2::int8 and index = $3::int4`,
        values: [shard, snapshot, index],
      });
      return found?.record;
    },
  };

  return {
    saveSnapshot: (shard, at, chunks) => saveSnapshot(store, shard, at, chunks),
    loadSnapshot: (shard) => loadSnapshot(store, shard),

    recordSegment: (segment, epoch) =>
      lane.transaction("record segment", async (run) => {
        const { shard, fromSeq, throughSeq, digest, sizeBytes } = segment;
        const { row } = await locked(run, shard, "record segment");
        guards.checkCurrent("record segment", row, epoch);
        const known = await segmentsOf(run, shard);
        const { seq: tailSeq } = await tailOf(run, row);
        if (!guards.checkSegment(segment, { known, baseSeq: row.baseSeq, tailSeq })) return;
        await run({
          text: `insert into ${schema}.segments values ($1::int4, $2::int8, $3::int8, $4::text, $5::int8)`,
          values: [shard, fromSeq, throughSeq, digest, sizeBytes],
        });
      }),

    segments: (shard) => lane.transaction("read segments", (run) => segmentsOf(run, shard)),

    async trim(shard, epoch, throughSeq) {
      // In steps: each holds the shard's row for a moment only, so appends wait little.
      const step = (run: Run): Promise<Seq> => trimStep(run, { shard, epoch, throughSeq });
      while ((await lane.transaction("trim log", step)) < throughSeq);
    },

    async findKeys(shard, keys) {
      const rows = await lane.read<{ n: number; job: number; hash: Uint8Array; until: number }>("find keys", {
        name: "find-keys",
        text: `select w.n, k.job, k.payload_hash as hash, k.retained_until_ms as until
          from unnest($2::bytea[]) with ordinality as w (key, n)
          join ${schema}.request_keys k on k.shard = $1::int4 and k.key = w.key
          where k.retained_until_ms > ${storeNow("$3")} order by w.n`,
        values: [shard, utf8Array(keys), offsetMs()],
      });
      return rows.map(({ n, job, hash, until }): RequestKey => {
        const payloadHash = Buffer.from(hash).toString();
        return { key: keys[n - 1] ?? "", job, payloadHash, retainedUntilMs: until };
      });
    },

    async trimKeys(shard, limit) {
      const rows = await lane.write("trim keys", {
        text: `delete from ${schema}.request_keys where shard = $1::int4 and key = any (array(
            select key from ${schema}.request_keys where shard = $1 and retained_until_ms <= ${storeNow("$2")}
            order by retained_until_ms limit $3::int4))
          and retained_until_ms <= ${storeNow("$2")} returning job`,
        values: [shard, offsetMs(), limit],
      });
      return rows.length;
    },
  };

  async function trimStep(run: Run, wanted: { shard: ShardId; epoch: number; throughSeq: Seq }): Promise<Seq> {
    const { shard, throughSeq } = wanted;
    const { row } = await locked(run, shard, "trim log");
    guards.checkCurrent("trim log", row, wanted.epoch);
    const archive = (await segmentsOf(run, shard)).at(-1)?.throughSeq ?? 0;
    const [cursor] = await run<{ seq: number }>({
      text: `select seq from ${schema}.history_cursors where shard = $1::int4`,
      values: [shard],
    });
    guards.checkTrim(shard, throughSeq, { snapshot: row.snapshotSeq, archive, history: cursor?.seq ?? 0 });
    const seq = Math.min(throughSeq, row.baseSeq + trimRecordsMax);
    if (seq <= row.baseSeq) return row.baseSeq;
    const { epoch: baseEpoch, hash: baseHash } = await record(run, shard, seq);
    await putShard(run, schema, { ...row, baseSeq: seq, baseEpoch, baseHash });
    await run({
      text: `delete from ${schema}.log where shard = $1::int4 and seq <= $2::int8`,
      values: [shard, seq],
    });
    return seq;
  }
}

function pointerOf(row: ShardRow): Pointer | undefined {
  if (row.snapshotId === 0) return undefined;
  const { snapshotId: id, snapshotEpoch: epoch, snapshotSeq: seq, snapshotChunks: chunks, snapshotHash: hash } = row;
  return { id, epoch, seq, chunks, hash };
}

const overtaken = (shard: ShardId): Fault =>
  new Fault("stale", "save snapshot", { why: "another one was begun since", shard });

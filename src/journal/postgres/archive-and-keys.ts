/** What PostgreSQL keeps besides the log: archived segments, the trimming that they allow, and request keys. */
import type { ShardId } from "#base/ids.ts";
import * as guards from "#journal/engine/guards.ts";
import type { Journal, RequestKey, Segment, Seq } from "#journal/journal.ts";
import type { Run } from "./lane.ts";
import type { Ports } from "./ownership.ts";
import { lockedShard, putShard, storedRecord, storedTail } from "./rows.ts";
import { utf8Array } from "./values.ts";
import type { ShardRow } from "#journal/engine/tables.ts";

type ArchiveAndKeys = Pick<Journal, "recordSegment" | "segments" | "trim" | "findKeys" | "trimKeys">;

const trimRecordsMax = 512;

export function keptIn({ lane, schema, offsetMs }: Ports): ArchiveAndKeys {
  const locked = (run: Run, shard: ShardId, doing: string): Promise<{ row: ShardRow }> =>
    lockedShard(run, { schema, shard, offsetMs: offsetMs(), doing });
  const segmentsOf = async (run: Run, shard: ShardId): Promise<Segment[]> =>
    await run<Segment>({
      text: `select shard, from_seq as "fromSeq", through_seq as "throughSeq", digest, size_bytes as "sizeBytes"
        from ${schema}.segments where shard = $1::int4 order by from_seq`,
      values: [shard],
    });
  return {
    recordSegment: (segment, epoch) =>
      lane.transaction("record segment", async (run) => {
        const { shard, fromSeq, throughSeq, digest, sizeBytes } = segment;
        const { row } = await locked(run, shard, "record segment");
        guards.checkCurrent("record segment", row, epoch);
        const known = await segmentsOf(run, shard);
        const { seq: tailSeq } = await storedTail(run, schema, row);
        if (!guards.checkSegment(segment, { known, baseSeq: row.baseSeq, tailSeq })) return;
        await run({
          text: `insert into ${schema}.segments values ($1::int4, $2::int8, $3::int8, $4::text, $5::int8)`,
          values: [shard, fromSeq, throughSeq, digest, sizeBytes],
        });
      }),

    segments: (shard) => lane.transaction("read segments", (run) => segmentsOf(run, shard)),

    async trim(shard, epoch, throughSeq) {
      // In steps: each locks the shard's row only briefly, so appends wait little.
      const step = (run: Run): Promise<Seq> => trimStep(run, { shard, epoch, throughSeq });
      while ((await lane.transaction("trim log", step)) < throughSeq);
    },

    async findKeys(shard, keys, atMs) {
      const rows = await lane.read<{ n: number; job: number; hash: Uint8Array; until: number }>("find keys", {
        name: "find-keys",
        text: `select w.n, k.job, k.payload_hash as hash, k.retained_until_ms as until
          from unnest($2::bytea[]) with ordinality as w (key, n)
          join ${schema}.request_keys k on k.shard = $1::int4 and k.key = w.key
          where k.retained_until_ms > $3::float8 order by w.n`,
        values: [shard, utf8Array(keys), atMs],
      });
      return rows.map(({ n, job, hash, until }): RequestKey => {
        const payloadHash = Buffer.from(hash).toString();
        return { key: keys[n - 1] ?? "", job, payloadHash, retainedUntilMs: until };
      });
    },

    async trimKeys(shard, atMs, limit) {
      const rows = await lane.write("trim keys", {
        text: `delete from ${schema}.request_keys where shard = $1::int4 and key = any (array(
            select key from ${schema}.request_keys where shard = $1 and retained_until_ms <= $2::float8
            order by retained_until_ms limit $3::int4))
          and retained_until_ms <= $2::float8 returning job`,
        values: [shard, atMs, limit],
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
    const { epoch: baseEpoch, hash: baseHash } = await storedRecord(run, schema, { shard, seq });
    await putShard(run, schema, { ...row, baseSeq: seq, baseEpoch, baseHash });
    await run({
      text: `delete from ${schema}.log where shard = $1::int4 and seq <= $2::int8`,
      values: [shard, seq],
    });
    return seq;
  }
}

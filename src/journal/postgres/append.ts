/**
 * Appends to the log in PostgreSQL: one statement, whatever the number of shards.
 *
 * The epoch's row is read `for share`: a takeover, which updates it, waits for appends in flight, and an append that
 * comes later sees the new epoch (J1). Without the lock a takeover could finish while an old append is in flight, and
 * that append would be written after the new owner has read the tail. Rows are locked in the order of shards, here and
 * everywhere, so that statements never deadlock.
 */
import { must } from "#base/assert.ts";
import { confirmation } from "#base/postgres-session.ts";
import type { ShardId } from "#base/ids.ts";
import { notNext, unknownShard } from "#journal/engine/guards.ts";
import type { AppendResult, Batch, Tail } from "#journal/journal.ts";
import type { Lane } from "./lane.ts";
import { byteaArray, float8Array, int4Array, int8Array, utf8Array } from "./values.ts";
import { encodeRecord, recordHash } from "#journal/record.ts";

export const storeNow = (offset: string): string =>
  `(extract(epoch from clock_timestamp()) * 1000)::float8 + ${offset}::float8`;

type AppendCheck = { n: number; known: boolean; mine: boolean; next: boolean; now: number };

// Look-ups are scalar subqueries, which always use the key: an `exists` may be planned as a full scan while the table
// is still small, and that plan would be kept.
const judgement = (schema: string): string => `
  wanted as (
    select * from unnest($1::int4[], $2::int8[], $3::int8[], $4::int8[], $5::int8[])
      with ordinality as w (shard, epoch, seq, link, hash, n)
  ), held as materialized (
    select shard, epoch, base_seq, base_hash from ${schema}.shards where shard = any ($1::int4[])
    order by shard for share
  ), judged as materialized (
    select w.n, w.shard, w.epoch, w.seq, w.hash, h.shard is not null as known,
      coalesce(h.epoch = w.epoch, false) as mine,
      coalesce((case when h.base_seq = w.seq - 1 then h.base_hash else (
        select l.hash from ${schema}.log l where l.shard = w.shard and l.seq = w.seq - 1) end) = w.link
        and (select l.seq from ${schema}.log l where l.shard = w.shard and l.seq = w.seq) is null, false) as next
    from wanted w left join held h using (shard)
  ), accepted as materialized (
    select * from judged where mine and not exists (select from judged where not known or (mine and not next))
  ), written as (
    insert into ${schema}.log (shard, seq, epoch, hash, record)
    select shard, seq, epoch, hash, ($6::bytea[])[n] from accepted
  )`;

const appendSql = (schema: string): string => `with ${judgement(schema)}
  select n, known, mine, next, ${storeNow("$7")} as now from judged order by n`;

const appendWithKeysSql = (schema: string): string => `with ${judgement(schema)}, bound as (
    insert into ${schema}.request_keys as k (shard, key, job, payload_hash, retained_until_ms)
    select distinct on (a.shard, b.key) a.shard, b.key, b.job, b.payload_hash, b.retained_until_ms
    from unnest($8::int8[], $9::bytea[], $10::int8[], $11::bytea[], $12::float8[])
      with ordinality as b (n, key, job, payload_hash, retained_until_ms, i) join accepted a using (n)
    order by a.shard, b.key, b.i desc
    on conflict (shard, key) do update set job = excluded.job, payload_hash = excluded.payload_hash,
      retained_until_ms = excluded.retained_until_ms
  ) select n, known, mine, next, ${storeNow("$7")} as now from judged order by n`;

export const tailSql = (schema: string): string => `
  select s.*, l.seq, l.record, ${confirmation} from ${schema}.shards s
  left join lateral (select seq, record from ${schema}.log where shard = s.shard order by seq desc limit 1) l on true
  where s.shard = $1::int4`;

export type AppendPorts = {
  readonly lane: Lane;
  readonly schema: string;
  readonly offsetMs: () => number;
  readonly tail: (shard: ShardId) => Promise<Tail>;
};

export function appending({
  lane,
  schema,
  offsetMs,
  tail,
}: AppendPorts): (batches: readonly Batch[]) => Promise<AppendResult> {
  /** The newest record as far as this process knows, for the next one's link. The statement checks it. */
  const newest = new Map<ShardId, Tail>();
  const plain = { name: "append", text: appendSql(schema) };
  const withKeys = { name: "append-keys", text: appendWithKeysSql(schema) };

  async function linksOf(batches: readonly Batch[]): Promise<number[]> {
    const links: number[] = [];
    for (const { shard, seq } of batches) {
      let known = newest.get(shard);
      if (known?.seq !== seq - 1) newest.set(shard, (known = await tail(shard)));
      links.push(known.hash);
    }
    return links;
  }

  async function attempt(batches: readonly Batch[]): Promise<readonly AppendCheck[]> {
    const links = await linksOf(batches);
    const hashes = batches.map((batch) => recordHash(batch));
    const keys = batches.flatMap((batch, i) => batch.keys.map((key) => ({ n: i + 1, ...key })));
    const values: unknown[] = [
      int4Array(batches.map(({ shard }) => shard)),
      int8Array(batches.map(({ epoch }) => epoch)),
      int8Array(batches.map(({ seq }) => seq)),
      int8Array(links),
      int8Array(hashes),
      byteaArray(batches.map((batch, i) => encodeRecord(batch, must(links[i], "link")))),
      offsetMs(),
    ];
    if (keys.length > 0)
      values.push(
        int8Array(keys.map(({ n }) => n)),
        utf8Array(keys.map(({ key }) => key)),
        int8Array(keys.map(({ job }) => job)),
        utf8Array(keys.map(({ payloadHash }) => payloadHash)),
        float8Array(keys.map(({ retainedUntilMs }) => retainedUntilMs)),
      );
    const judged = await lane.write<AppendCheck>("append", { ...(keys.length > 0 ? withKeys : plain), values });
    for (const [i, { shard, epoch, seq }] of batches.entries()) {
      const appended = judged.every(({ known, mine, next }) => known && (!mine || next)) && judged[i]?.mine === true;
      if (appended) newest.set(shard, { epoch, seq, hash: must(hashes[i], "hash") });
      else newest.delete(shard);
    }
    return judged;
  }

  return async (batches) => {
    if (batches.length === 0) {
      const [row] = await lane.read<{ now: number }>("append", {
        text: `select ${storeNow("$1")} as now`,
        values: [offsetMs()],
      });
      return { outcomes: [], storeNowMs: must(row, "row").now };
    }
    let judged = await attempt(batches);
    // This process may have an outdated tail: try once more with the store's.
    if (judged.some(({ mine, next }) => mine && !next)) judged = await attempt(batches);
    for (const [i, { shard, seq }] of batches.entries()) {
      const { known, mine, next } = must(judged[i], "judgement");
      if (!known) throw unknownShard("append", shard);
      if (mine && !next) throw notNext(shard, seq, newest.get(shard)?.seq);
    }
    const outcomes = judged.map(({ mine }) => (mine ? "appended" : "fenced"));
    return { outcomes, storeNowMs: must(judged[0], "judgement").now };
  };
}

/**
 * The journal in PostgreSQL, for many nodes. Appends, history and the rest have separate connections, so that heavy
 * reading and writing of one does not delay the others.
 */
import { randomBytes } from "node:crypto";
import type pg from "pg";
import { must } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { LogPage } from "#journal/engine/engine-log.ts";
import { grouped } from "#journal/grouped.ts";
import { checkTail, unknownShard } from "#journal/engine/guards.ts";
import type { Journal, Seq, Tail } from "#journal/journal.ts";
import { appending, tailSql } from "./append.ts";
import { describeServer } from "./describe.ts";
import { entriesIn } from "./entries.ts";
import { historyIn } from "./history.ts";
import { Lane, type Row } from "./lane.ts";
import { clusterOf, clusterSql, ownershipIn } from "./ownership.ts";
import { recordsIn } from "./records.ts";
import { shardRowOf } from "./rows.ts";
import { checkSchemaName, prepareSchema } from "./schema.ts";
import { keptIn } from "./archive-and-keys.ts";
import { snapshotsIn } from "./snapshots.ts";
import { loadSnapshot, saveSnapshot } from "#journal/engine/snapshots.ts";
import { readLog } from "#journal/engine/reading.ts";
import { decodeRecord } from "#journal/record.ts";
import { baseOf } from "#journal/engine/tables.ts";

export type PostgresOptions = {
  readonly url: string;
  /** The schema that holds the tables. */
  readonly schema?: string;
  readonly connectTimeoutMs?: number;
  readonly statementTimeoutMs?: number;
  /** For everything but appends. */
  readonly connectionsMax?: number;
  /** Added to the store's clock; for tests. */
  readonly clockOffsetMs?: () => number;
};

const pageBytesMax = 1 << 20;
const pageRowsMax = 256;

export function postgresJournal(options: PostgresOptions): Journal {
  const { url, connectTimeoutMs = 4_000, statementTimeoutMs = 5_000, connectionsMax = 4 } = options;
  const { clockOffsetMs: offsetMs = () => 0 } = options;
  const schema = checkSchemaName(options.schema ?? "millrace");
  const session = `millrace ${randomBytes(6).toString("hex")}`;
  const timeouts = { url, connectTimeoutMs, statementTimeoutMs };
  const appendName = `${session} append`;
  const appendLane = new Lane({
    ...timeouts,
    name: appendName,
    connectionsMax: 1,
    prepare: (client) => endGhosts(client, appendName),
  });
  const lane = new Lane({ ...timeouts, name: session, connectionsMax });
  const historyLane = new Lane({
    ...timeouts,
    name: `${session} history`,
    connectionsMax: 2,
    statementTimeoutMs: statementTimeoutMs * 4,
  });

  /** On the connection of the appends: after a lost append it reads only when that append can no longer take effect. */
  async function tail(shard: ShardId): Promise<Tail> {
    const statement = { name: "tail", text: tailSql(schema), values: [shard] };
    const [found] = await appendLane.read<Row & { seq: number | null; record: Uint8Array }>("read tail", statement);
    if (!found) throw unknownShard("read tail", shard);
    const row = shardRowOf(found);
    if (found.seq === null) return checkTail(row, baseOf(row));
    const { epoch, seq, hash } = decodeRecord(found.record, { kind: "batch", shard, seq: found.seq, link: undefined });
    return checkTail(row, { epoch, seq, hash });
  }

  async function page(shard: ShardId, fromSeq: Seq): Promise<LogPage> {
    const rows = await lane.read<Row & { seq: number | null; record: Uint8Array }>("read log", {
      name: "page",
      text: pageSql(schema),
      values: [shard, fromSeq, pageRowsMax, pageBytesMax],
    });
    const [first] = rows;
    if (!first) throw unknownShard("read log", shard);
    const base = {
      epoch: Number(first["base_epoch"]),
      seq: Number(first["base_seq"]),
      hash: Number(first["base_hash"]),
    };
    const stored = rows.flatMap(({ seq, record }) => (seq === null ? [] : { seq, record }));
    return { base, rows: stored, more: stored.length > 0 };
  }

  const open: Journal["open"] = async (wanted) => {
    await prepareSchema(lane, schema);
    return await lane.transaction("open journal", async (run) => {
      await run({
        text: `insert into ${schema}.cluster values (1, $1::text, $2::int4, 0) on conflict (one) do nothing`,
        values: [wanted.clusterId, wanted.shards],
      });
      const cluster = clusterOf(must((await run({ text: clusterSql(schema) }))[0], "cluster row"));
      await run({
        text: `insert into ${schema}.shards (shard) select generate_series(0, $1::int4 - 1) on conflict do nothing`,
        values: [cluster.shards],
      });
      return cluster;
    });
  };

  const ports = { lane, schema, offsetMs };
  const snapshots = snapshotsIn(ports);
  return {
    open,
    append: grouped(appending({ lane: appendLane, schema, offsetMs, tail })),
    tail,
    read: (shard, fromSeq) => readLog(shard, fromSeq, (from) => page(shard, from)),
    ...ownershipIn(ports),
    ...keptIn(ports),
    saveSnapshot: (shard, at, chunks) => saveSnapshot(snapshots, shard, at, chunks),
    loadSnapshot: (shard) => loadSnapshot(snapshots, shard),
    describe: () => describeServer(lane),
    entries: entriesIn(ports),
    records: recordsIn(ports),
    history: historyIn({ lane: historyLane, schema }),
    async close() {
      await Promise.all([appendLane.close(), lane.close(), historyLane.close()]);
    },
  };
}

/**
 * A session of ours that lost its client may still be running an append. A new session ends it first: from then on what
 * the tail says is final (J2).
 */
async function endGhosts(client: pg.ClientBase, name: string): Promise<void> {
  const { rows } = await client.query<{ ended: string | boolean }>({
    text: `select pg_terminate_backend(pid, 3000)::text as ended from pg_stat_activity
      where application_name = $1 and pid <> pg_backend_pid()`,
    values: [name],
  });
  if (rows.some(({ ended }) => ended !== "true"))
    throw new Fault("unavailable", "connect for appends", { why: "an earlier session of ours is still running" });
}

/** Pages are limited by bytes as well: the size of a stored value is known without reading it. */
const pageSql = (schema: string): string => `
  select s.base_seq, s.base_epoch, s.base_hash, l.seq, l.record from ${schema}.shards s left join lateral (
    select seq, record from (
      select seq, record, sum(octet_length(record)) over (order by seq) - octet_length(record) as before_bytes from (
        select seq, record from ${schema}.log where shard = s.shard and seq >= $2::int8 order by seq limit $3::int4
      ) as few
    ) as sized where before_bytes < $4::int8
  ) l on true where s.shard = $1::int4 order by l.seq`;

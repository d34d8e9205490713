import type { ShardId } from "#base/ids.ts";
import { checkTail, unknownShard } from "#journal/engine/guards.ts";
import type { NodeRow, Seq, Tail } from "#journal/journal.ts";
import { storeNow } from "./append.ts";
import type { Row, Run } from "./lane.ts";
import { decodeRecord } from "#journal/record.ts";
import { baseOf, freshShard, type SeenRow, type ShardRow } from "#journal/engine/tables.ts";

const fields = Object.keys(freshShard(0)) as (keyof ShardRow)[];
const columnOf = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const columns = fields.map((field) => ({ field, column: columnOf(field) }));

export const shardRowOf = (row: Row): ShardRow =>
  Object.fromEntries(columns.map(({ field, column }) => [field, row[column]])) as ShardRow;

/** The shard's row, locked until the end of the transaction, and the time once it is locked. */
export async function lockedShard(
  run: Run,
  { schema, shard, offsetMs, doing }: { schema: string; shard: ShardId; offsetMs: number; doing: string },
): Promise<{ row: ShardRow; nowMs: number; featureLevel: number }> {
  const [found] = await run({
    name: "lock-shard",
    text: `with level as materialized (select feature_level from ${schema}.cluster for share),
      held as materialized (select * from ${schema}.shards where shard = $1::int4 for no key update)
      select held.*, level.feature_level, ${storeNow("$2")} as now from held, level`,
    values: [shard, offsetMs],
  });
  if (!found) throw unknownShard(doing, shard);
  return { row: shardRowOf(found), nowMs: Number(found["now"]), featureLevel: Number(found["feature_level"]) };
}

export async function putShard(run: Run, schema: string, row: ShardRow): Promise<void> {
  const rest = columns.filter(({ field }) => field !== "shard");
  const changes = rest.map(({ column }, i) => `${column} = $${i + 2}`).join(", ");
  await run({
    name: "put-shard",
    text: `update ${schema}.shards set ${changes} where shard = $1`,
    values: [row.shard, ...rest.map(({ field }) => row[field])],
  });
}

export const seenRowOf = (row: Row): SeenRow => ({
  ...(JSON.parse(String(row["row"])) as NodeRow),
  seenAtMs: Number(row["seen_at_ms"]),
  ttlMs: Number(row["ttl_ms"]),
});

/** One verified record of the log, by its position. */
export async function storedRecord(
  run: Run,
  schema: string,
  { shard, seq }: { shard: ShardId; seq: Seq },
): Promise<Tail> {
  const [found] = await run<{ record: Uint8Array }>({
    text: `select record from ${schema}.log where shard = $1::int4 and seq = $2::int8`,
    values: [shard, seq],
  });
  const record = found?.record ?? new Uint8Array();
  const { epoch, hash } = decodeRecord(record, { kind: "batch", shard, seq, link: undefined });
  return { epoch, seq, hash };
}

export async function storedTail(run: Run, schema: string, row: ShardRow): Promise<Tail> {
  const { shard } = row;
  const [found] = await run<{ seq: number | null }>({
    text: `select max(seq) as seq from ${schema}.log where shard = $1::int4`,
    values: [shard],
  });
  const seq = found?.seq ?? null;
  return checkTail(row, seq === null ? baseOf(row) : await storedRecord(run, schema, { shard, seq }));
}

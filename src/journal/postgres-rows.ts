import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import { unknownShard } from "./guards.ts";
import type { NodeRow } from "./journal.ts";
import { storeNow } from "./postgres-append.ts";
import type { Row, Run } from "./postgres-lane.ts";
import { freshShard, type SeenRow, type ShardRow } from "./tables.ts";

const fields = Object.keys(freshShard(0)) as (keyof ShardRow)[];
const columnOf = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const columns = fields.map((field) => ({ field, column: columnOf(field) }));

export const shardRowOf = (row: Row): ShardRow =>
  Object.fromEntries(columns.map(({ field, column }) => [field, row[column]])) as ShardRow;

/** The shard's row, held until the end of the transaction, and the time once it is held. */
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

export const notOpened = (): Fault => new Fault("not-found", "read cluster", { why: "the store has not been opened" });

import { deepEqual, equal, match, ok } from "node:assert/strict";
import { after, test } from "node:test";
import pg from "pg";
import { startPostgres } from "#test/postgres.ts";
import { exerciseJournal } from "./exercise.ts";
import { flipped } from "./memory-tables.ts";
import { judgeServer } from "./postgres-describe.ts";
import { postgresJournal } from "./postgres.ts";

const postgres = await startPostgres();
if (postgres.skip) console.error(`journal in PostgreSQL is NOT tested: ${postgres.skip}`);

let schemas = 0;
const raw = postgres.skip ? undefined : new pg.Pool({ connectionString: postgres.server().url(), max: 2 });
after(async () => {
  await raw?.end();
  await postgres.stop();
});

exerciseJournal(
  "in PostgreSQL",
  async () => {
    const schema = `test_${(schemas += 1)}`;
    let offsetMs = 0;
    const sql = async (text: string, values: unknown[]): Promise<{ record: Buffer }[]> =>
      (await raw?.query<{ record: Buffer }>(text, values))?.rows ?? [];
    const flip = async (table: string, where: string, args: number[], bit: number): Promise<void> => {
      const [row] = await sql(`select record from ${schema}.${table} where ${where}`, args);
      const damaged = Buffer.from(flipped(row?.record ?? Buffer.of(), bit));
      await sql(`update ${schema}.${table} set record = $${args.length + 1} where ${where}`, [...args, damaged]);
    };
    return {
      connect: async () =>
        postgresJournal({ url: postgres.server().url(), schema, clockOffsetMs: () => offsetMs, connectionsMax: 2 }),
      advance: (ms) => void (offsetMs += ms),
      tamper: {
        flipRecord: (shard, seq, bit) => flip("log", "shard = $1 and seq = $2", [shard, seq], bit),
        dropRecord: async (shard, seq) =>
          void (await sql(`delete from ${schema}.log where shard = $1 and seq = $2`, [shard, seq])),
        flipChunk: (shard, index, bit) => {
          const newest = `(select snapshot_id from ${schema}.shards s where s.shard = $1)`;
          return flip("chunks", `shard = $1 and index = $2 and snapshot = ${newest}`, [shard, index], bit);
        },
      },
      destroy: async () => void (await sql(`drop schema ${schema} cascade`, [])),
    };
  },
  { skip: postgres.skip },
);

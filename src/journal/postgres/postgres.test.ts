import { deepEqual, equal } from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import pg from "pg";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { until } from "#testing/until.ts";
import { exerciseJournal } from "#journal/testing/exercise.ts";
import { batch, own } from "#journal/testing/support.ts";
import { flipped } from "#journal/memory/memory-tables.ts";
import { byteaArray, float8Array, int4Array, int8Array, resultTypes, textArray } from "./values.ts";
import { postgresJournal } from "./postgres.ts";

// postgres/faults.test.ts covers crashes of the server.
const postgres = await sharedPostgres();
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

test("columns sent as binary arrays arrive unchanged", { skip: postgres.skip }, async () => {
  const client = new pg.Client({ connectionString: postgres.server().url(), types: resultTypes });
  await client.connect();
  const row = fc.tuple(
    fc.integer(),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.string({ unit: "binary" }),
    fc.uint8Array(),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(row, { maxLength: 20 }), async (rows) => {
      const values = [
        int4Array(rows.map(([value]) => value)),
        int8Array(rows.map(([, value]) => value)),
        float8Array(rows.map(([, , value]) => value)),
        textArray(rows.map(([, , , value]) => value)),
        byteaArray(rows.map(([, , , , value]) => value)),
      ];
      const text = "select * from unnest($1::int4[], $2::int8[], $3::float8[], $4::text[], $5::bytea[])";
      const { rows: answers } = await client.query<unknown[]>({ text, values, rowMode: "array" });
      const expected = rows.map(([a, b, c, d, e]) => [a, b, c === 0 ? 0 : c, d.replaceAll("\u0000", "\ufffd"), e]);
      deepEqual(
        answers.map(([a, b, c, d, e]) => [a, b, c === 0 ? 0 : c, d, e]),
        expected,
      );
    }),
    { numRuns: 100 },
  );
  await client.end();
});

test(
  "K1: a key that is bound again while old ones are trimmed stays",
  { skip: postgres.skip, timeout: 90_000 },
  async () => {
    const schema = `test_${(schemas += 1)}`;
    const journal = postgresJournal({ url: postgres.server().url(), schema, connectionsMax: 2 });
    const client = new pg.Client({ connectionString: postgres.server().url(), types: resultTypes });
    await client.connect();
    try {
      await journal.open({ clusterId: "test", shards: 1 });
      const epoch = await own(journal, 0);
      const [atMs, laterMs] = [1_000, 2_000];
      const bound = { key: "k", job: 1, payloadHash: "h", retainedUntilMs: atMs };
      await journal.append([batch(0, epoch, 1, [bound])]);
      // As an append that binds the key again: its row is changed, and other sessions do not see that yet.
      await client.query("begin");
      await client.query(`update ${schema}.request_keys set job = 2, retained_until_ms = ${laterMs}`);
      const trimmed = journal.trimKeys(0, atMs, 10);
      await until("the trimming waits for the row", async () => {
        const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%${schema}%'`;
        return (await raw?.query(waiting))?.rowCount === 1;
      });
      await client.query("commit");
      equal(await trimmed, 0);
      deepEqual(await journal.findKeys(0, ["k"], atMs), [{ ...bound, job: 2, retainedUntilMs: laterMs }]);
      equal(await journal.trimKeys(0, laterMs, 10), 1);
    } finally {
      await client.end();
      await journal.close();
      await raw?.query(`drop schema ${schema} cascade`);
    }
  },
);

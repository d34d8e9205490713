/** Functions of users: what goes in and comes out, and what happens when they misbehave. Without a sandbox. */
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { MapFunction } from "#doors/batch/plan/map-function.ts";
import { LocalRuns } from "#doors/batch/testing/local-run.ts";
import { openOracle, rowsOf } from "#doors/batch/testing/oracle.ts";
import { realClock } from "#testing/real-clock.ts";
import { createProcessRunner } from "#worker/process.ts";
import { folderOf, type CallBox } from "#doors/batch/run/map/call-box.ts";

const staged = { splitBytes: 4_000, broadcastBytes: 100, partitions: 2, reduceBytes: 1 };
const inOne = { ...staged, splitBytes: 1e9 };
const usual = {
  language: "javascript",
  export: "f",
  params: "null",
  batchRows: 100,
  batchMs: 20_000,
  skipMax: 0,
  isDeterministic: true,
} as const;
const hasPython = spawnSync("python3", ["--version"]).status === 0;

describe("a function over batches", () => {
  let runs: LocalRuns;
  const oracle = openOracle();
  before(async () => {
    runs = await LocalRuns.open(realClock, 2);
    await (
      await oracle
    ).run(
      `copy (select range as id, range % 7 as k, 'n' || range as name, range / 4 as f from range(8000)) ` +
        `to '${runs.folder}/t.parquet' (row_group_size 2048)`,
    );
  });
  after(() => runs[Symbol.asyncDispose]());

  const box = async (): Promise<CallBox> => {
    const root = await mkdtemp(join(runs.folder, "box-"));
    const processes = createProcessRunner(realClock);
    return {
      ...folderOf(root, undefined),
      async run(command, _limits, signal) {
        const env = { PATH: process.env["PATH"] ?? "" };
        const { output } = await processes({ command, cwd: root, env, outputBytesMax: 10_000, signal });
        return { isOutOfMemory: false, said: output.tail(5_000), output };
      },
      [Symbol.asyncDispose]: async () => {},
    };
  };
  const run = async (
    code: string,
    schema: MapFunction["schema"],
    {
      sql = "select * from f",
      inner = "select * from 't.parquet'",
      settings = staged,
      ...more
    }: {
      sql?: string;
      inner?: string;
      settings?: typeof staged;
    } & Partial<MapFunction> = {},
  ) => {
    const called: MapFunction = { ...usual, module: "", schema, ...more };
    const answer = await runs.run(sql, settings, {
      maps: [{ name: "f", sql: inner, function: called }],
      functions: { open: box, module: async () => Buffer.from(code) },
    });
    const paths = answer.paths.map((path) => `'${path}'`).join(", ");
    return { answer, rows: await rowsOf(await oracle, `select * from read_parquet([${paths}]) order by all`) };
  };
  const want = async (sql: string): Promise<readonly string[]> =>
    await rowsOf(await oracle, sql.replaceAll("'t.parquet'", `'${runs.folder}/t.parquet'`));

  test("gets lists by column and returns lists, in many tasks, and queries go on from there", async () => {
    const code = "export const f = ({ id, k }, { by }) => ({ key: k, twice: id.map((one) => one * by) });";
    const schema = [
      { name: "key", type: "bigint" },
      { name: "twice", type: "BIGINT" },
    ];
    const sql = "select key, sum(twice)::BIGINT as s, count(*) as n from f where key < 5 group by key";
    const { answer, rows } = await run(code, schema, { sql, params: '{"by":2}' });
    deepEqual(
      rows,
      await want("select k, sum(id * 2)::BIGINT, count(*) from 't.parquet' where k < 5 group by k order by all"),
    );
    deepEqual(
      answer.stages.map(({ stage }) => stage.about),
      ["function f", "partial groups", "result"],
    );
    equal((answer.stages[0]?.parts.length ?? 0) > 1, true);
    const { rows: few } = await run(code, schema, { sql, params: '{"by":2}', settings: inOne });
    deepEqual(few, rows);
  });

  test("may return more or fewer rows, and values of all types come and go exactly", async () => {
    const inner =
      "select 9007199254740993::BIGINT as b, 'nan'::DOUBLE as x, 1.25::DECIMAL(9,2) as d, DATE '2024-02-29' as dt, " +
      "TIMESTAMP '2024-02-29 10:11:12' as ts, 'ab'::BLOB as bl, NULL::VARCHAR as n, [1, 2] as l, -0.0::DOUBLE as z";
    const code = `export async function f(c) {
      const t = [typeof c.b[0], c.x[0], c.d[0], c.dt[0].toISOString(), c.bl[0].length, c.n[0], c.l[0].length].join();
      return ["first", t].map((said) => ({ said, ...Object.fromEntries(Object.entries(c).map(([k, [v]]) => [k, v])) }));
    }`;
    const types = {
      b: "BIGINT",
      x: "DOUBLE",
      d: "DECIMAL(9,2)",
      dt: "DATE",
      ts: "TIMESTAMP",
      bl: "BLOB",
      n: "VARCHAR",
    };
    const more = { ...types, l: "INTEGER[]", z: "DOUBLE", said: "VARCHAR" };
    const schema = Object.entries(more).map(([name, type]) => ({ name, type }));
    const { rows } = await run(code, schema, { inner });
    const said = "bigint,NaN,1.25,2024-02-29T00:00:00.000Z,2,,2";
    deepEqual(rows, await want(`select *, unnest(['first', '${said}']) as said from (${inner}) order by all`));
  });

  test("that fails is named with its message; rows that it fails on are left out where asked", async () => {
    const code = `export function f({ id }) {
      for (const one of id) if (one % 1000 === 7) throw new RangeError("no " + one);
      return { id };
    }`;
    const schema = [{ name: "id", type: "BIGINT" }];
    const some = { inner: "select * from 't.parquet' where id < 2000", settings: inOne };
    await rejects(run(code, schema, some), /RangeError: no 7/);
    const { rows } = await run(code, schema, { ...some, skipMax: 2 });
    equal(rows.length, 1_998);
    await rejects(run(code, schema, { ...some, skipMax: 1 }), /no 1007/);
  });

  test("that hangs, dies, exports nothing or returns nonsense fails with a clear message", async () => {
    const schema = [{ name: "id", type: "BIGINT" }];
    const cases = [
      ["export const f = () => { for (;;); };", /took more than 300 ms/],
      ["export const f = () => process.exit(3);", /ended without a result/],
      ["export const g = 1;", /exports no function f/],
      ["export const f = () => 5;", /list of rows/],
      ["export const f = () => ({ other: [] });", /no list for the column id/],
      ["export const f = () => ({ id: ['x'] });", /returned a wrong value.*"x"/s],
      ["this is no code", /SyntaxError/],
    ] as const;
    for (const [code, why] of cases) await rejects(run(code, schema, { batchMs: 300, settings: inOne }), why);
  });

  test("may be Python", { skip: hasPython ? false : "needs python3" }, async () => {
    const code =
      "def f(columns, params):\n  return {'id': [i + params for i in columns['id']], 'n': columns['name']}\n";
    const schema = [
      { name: "id", type: "BIGINT" },
      { name: "n", type: "VARCHAR" },
    ];
    const { rows } = await run(code, schema, { language: "python", params: "5" });
    deepEqual(rows, await want("select id + 5, name from 't.parquet' order by all"));
    const bad = "def f(columns, params):\n  raise ValueError('bad')\n";
    await rejects(run(bad, schema, { language: "python", settings: inOne }), (error: Error) => {
      match(error.message, /ValueError: bad/);
      return true;
    });
  });
});

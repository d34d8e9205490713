import { equal, match, ok, rejects } from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { after, describe, test } from "node:test";
import pg from "pg";
import { startPostgres } from "./postgres.ts";
import { until } from "./until.ts";

const postgres = await startPostgres();
after(() => postgres.stop());

async function ask(url: string, sql: string): Promise<unknown> {
  const client = new pg.Client(url);
  client.on("error", () => {}); // the server is stopped on purpose
  await client.connect();
  try {
    const { rows } = await client.query<{ answer: unknown }>(sql);
    return rows[0]?.answer;
  } finally {
    await client.end();
  }
}

describe("a PostgreSQL server for tests", { skip: postgres.skip }, () => {
  test("answers, and fsyncs unless told otherwise", async () => {
    equal(await ask(postgres.server().url(), "select 1 as answer"), 1);
    equal(await ask(postgres.server().url(), "select current_setting('fsync') as answer"), "on");
  });

  test("gives every suite a database of its own", async () => {
    const [one, two] = [await postgres.server().freshDatabase(), await postgres.server().freshDatabase()];
    await ask(one, "create table mine ()");
    equal(await ask(two, "select to_regclass('mine') as answer"), null);
  });

  for (const how of ["fast", "immediate"] as const) {
    test(`keeps its data and its address over a restart (${how})`, async () => {
      const url = await postgres.server().freshDatabase();
      await ask(url, "create table kept as select 42 as answer");
      await postgres.server().stop(how);
      await rejects(ask(url, "select 1 as answer"));
      await postgres.server().start();
      equal(await ask(url, "select answer from kept"), 42);
    });
  }

  test("does not outlive a test process that is killed", async () => {
    const script = `
      import { startPostgres } from ${JSON.stringify(import.meta.resolve("./postgres.ts"))};
      import pg from "pg";
      const server = (await startPostgres({ durable: false })).server();
      const client = new pg.Client(server.url());
      await client.connect();
      const { rows } = await client.query("select current_setting('data_directory') as folder");
      console.log(rows[0].folder);
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { cwd: import.meta.dirname });
    const folder = await new Promise<string>((resolve, reject) => {
      child.stdout.once("data", (line: Buffer) => resolve(line.toString().trim()));
      child.once("exit", (code) => reject(new Error(`ended with ${code}`)));
    });
    match(folder, /millrace-postgres-/);
    ok(existsSync(folder));
    child.kill("SIGKILL");
    await until("its data folder is gone", () => !existsSync(folder));
  });
});

test("if it cannot start, tests get a reason to skip", { skip: postgres.skip }, async () => {
  const broken = await startPostgres({ settings: { max_connections: "no number" } });
  match(String(broken.skip), /^needs postgres: postgres ended with code \d+: .*max_connections/s);
  await broken.stop();
});

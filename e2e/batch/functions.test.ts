/** Functions of users on a node: code travels from files, runs in the sandbox, and what it does wrong stays its own. */
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { dataset, count, sum } from "#doors/batch/api/batch.ts";
import { clearAway } from "#testing/clear-away.ts";
import { cliLine } from "#testing/cli-line.ts";
import { apiAsks, newFolder, writeEvents } from "./lab.ts";

const folder = await newFolder();
const oracle = await writeEvents(folder);
const data = dataFolder(join(folder, "data"));
const config = Config.parse({
  cluster: { shards: 1 },
  edge: { listen: ["127.0.0.1:0"] },
  worker: { slots: 2 },
  batch: { taskMemory: "64MiB" },
});
const node = await startNode(config, data, { log: () => {} });
after(async () => {
  await node.stop();
  clearAway(folder);
});
apiAsks(data.path);

const events = dataset.parquet<{ user: number; country: string; ms: number }>(`${folder}/events-*.parquet`);
const staged = { splitBytes: 20_000, broadcastBytes: 100, partitions: 2, folder };
const noBox = spawnSync("bwrap", ["--version"]).status === 0 ? false : "needs bubblewrap";
const at = (name: string): string => join(folder, name);

await writeFile(at("words.ts"), "export const upper = (text: string): string => text.toUpperCase();\n");
await writeFile(
  at("clean.ts"),
  `import { upper } from "./words.ts";
export function tidy({ country, ms }: { country: string[]; ms: number[] }, { cut }: { cut: number }) {
  return country.flatMap((one, i) => ((ms[i] ?? 0) >= cut ? [{ land: upper(one), ms: ms[i] }] : []));
}\n`,
);

const tidied = events.mapBatches<{ land: string; ms: number }>(`${at("clean.ts")}#tidy`, {
  schema: { land: "VARCHAR", ms: "BIGINT" },
  params: { cut: 100 },
});
const wanted = `select upper(country) as land, count(*) as n, sum(ms)::BIGINT as ms from '${folder}/events-*.parquet'
  where ms >= 100 group by all order by land`;

describe("functions of users", { timeout: 90_000 }, () => {
  test("run with what they import, in many tasks, and are found again", async () => {
    const query = tidied
      .groupBy("land")
      .agg({ n: count(), ms: sum("ms") })
      .sort("land");
    const want = (await oracle.runAndReadAll(wanted)).getRowObjectsJson().map((row) => Object.values(row).map(String));
    const job = await query.submit(staged);
    deepEqual(
      (await job.rows()).map((row) => Object.values(row).map(String)),
      want,
    );
    const { stages } = (await job.status()) as unknown as {
      stages: { about: string; tasks: number; reused: number }[];
    };
    match(stages[0]?.about ?? "", /^function map_/);
    equal((stages[0]?.tasks ?? 0) > 1, true);
    const again = await query.submit(staged);
    await again.done();
    for (const { tasks, reused } of ((await again.status()) as unknown as { stages: typeof stages }).stages)
      equal(reused, tasks);
  });

  test("come from job files, too", async () => {
    await writeFile(
      at("job.yaml"),
      `sql: select count(*) as n from tidy
maps:
  - { name: tidy, sql: select * from 'events-*.parquet', file: clean.ts, export: tidy, params: { cut: 79990 },
      schema: [{ name: land, type: VARCHAR }] }\n`,
    );
    const ran = await cliLine(data.path, "batch", "run", "--json", at("job.yaml"));
    deepEqual([ran.code, ran.out], [0, ['{"n":"10"}']], ran.notes.join());
  });

  test("see neither the node's files nor a network", { skip: noBox }, async () => {
    await writeFile(
      at("curious.ts"),
      `import { connect } from "node:net";
import { readdirSync } from "node:fs";
const tried = async (what: () => unknown) => {
  try {
    await what();
    return "yes";
  } catch {
    return "no";
  }
};
const reach = (port: number) =>
  new Promise((done, failed) => connect(port, "127.0.0.1").on("connect", done).on("error", failed));
export default async (_: unknown, { data, port }: { data: string; port: number }) => [
  {
    files: await tried(() => readdirSync(data)[0]?.at(0) ?? JSON.parse("")),
    network: await tried(() => reach(port)),
  },
];\n`,
    );
    await using listener = createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    const { port } = listener.address() as AddressInfo;
    const seen = await dataset
      .query<{ one: number }>({ sql: "select 1 as one" } as never)
      .mapBatches<{ files: string; network: string }>(at("curious.ts"), {
        schema: { files: "VARCHAR", network: "VARCHAR" },
        params: { data: data.path, port },
      })
      .collect({ folder });
    equal(seen.length, 1);
    equal(seen[0]?.files === "yes" || seen[0]?.network === "yes", false, JSON.stringify(seen));
  });

  test("that run out of memory get twice as much, in the same attempt", async () => {
    await writeFile(
      at("hungry.ts"),
      `export default ({ one }: { one: number[] }, mib: number) => {
  const all = Array.from({ length: mib }, (_, i) => Array.from({ length: 131072 }, (_, k) => k + i + 0.5));
  return { one, held: one.map(() => all.length) };
};\n`,
    );
    const hungry = dataset
      .query<{ one: number }>({ sql: "select 1 as one" } as never)
      .mapBatches<{ held: number }>(at("hungry.ts"), { schema: { held: "BIGINT" }, params: 200 });
    const job = await hungry.submit({ folder });
    deepEqual(await job.rows(), [{ held: 200 }]);
  });

  test("print to the log of their task, whether they succeed or fail", async () => {
    await writeFile(
      at("chatty.ts"),
      `export default ({ one }: { one: number[] }, fails: boolean) => {
  console.log("one", one.length);
  process.stdout.write("two\\n");
  console.error("three");
  if (fails) throw new Error("no luck");
  return { one };
};\n`,
    );
    const query = dataset.query<{ one: number }>({ sql: "select 1 as one" } as never);
    for (const params of [false, true]) {
      const job = await query
        .mapBatches<{ one: number }>(at("chatty.ts"), { schema: { one: "BIGINT" }, params })
        .submit({ folder });
      await (params ? rejects(job.done(), /no luck/) : job.done());
      const logs = await cliLine(data.path, "job", "logs", job.id);
      match(logs.out.join("\n"), /one 1\n.*two\n.*three/, logs.notes.join());
    }
  });

  test("that fail name themselves", async () => {
    await writeFile(at("bad.ts"), "export default () => { throw new Error('no such luck'); };\n");
    const bad = events.mapBatches(at("bad.ts"), { schema: { a: "BIGINT" } });
    await rejects(bad.collect({ folder }), /no such luck/);
    await rejects(events.mapBatches(at("none.ts"), { schema: { a: "BIGINT" } }).collect({ folder }), /none\.ts/);
  });
});

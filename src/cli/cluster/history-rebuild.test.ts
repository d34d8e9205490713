import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { orderFromCommand } from "#app/job-order.ts";
import { until } from "#testing/until.ts";
import type { World } from "#door/command.ts";
import { runLine } from "#cli/line.ts";

async function run(data: string, ...args: string[]) {
  const said = { out: [] as string[], notes: [] as string[], progress: [] as string[] };
  const world: World = {
    env: { MILLRACE_DATA: data },
    isTerminal: false,
    out: (line) => said.out.push(line),
    note: (line) => said.notes.push(line),
    progress: (line) => said.progress.push(line),
    http: () => Promise.reject(new Error("not asked over HTTP")),
  };
  return { code: await runLine(["history", "rebuild", ...args], world), ...said };
}

test("history rebuild brings back a history whose file was lost", { timeout: 120_000 }, async () => {
  const data = await mkdtemp(join(tmpdir(), "millrace-rebuild-"));
  const folder = dataFolder(data);
  const start = () => startNode(Config.parse({ edge: { listen: [] } }), folder, { log: () => {} });
  try {
    const first = await start();
    await first.client.submit(orderFromCommand(["true"], { tenant: "t" }));
    const listed = () => first.journal.history.jobs({ limit: 10 });
    const ended = async () => (await listed()).jobs[0]?.phase === "SUCCEEDED";
    await until("the history lists the job as ended", ended);
    const { jobs } = await listed();
    await first.stop();
    for (const end of ["", "-wal", "-shm"]) await rm(join(folder.journal, `history.db${end}`), { force: true });

    const { code, out, notes, progress } = await run(data);
    deepEqual([code, out.length, notes], [0, 8, []]);
    match(out.join("\n"), new RegExp(`shard ${jobs[0]?.shard}: [1-9]\\d* rows from \\d+ batches`));
    match(progress.join("\n"), /shard 0: checking 100%, 0 rows\n[^]*shard 0: writing 100%, \d+ rows/);
    const again = await run(data, "--json", "--shard", String(jobs[0]?.shard));
    const { throughSeq, rows, ...facts } = JSON.parse(again.out[0] ?? "") as { throughSeq: number; rows: number };
    deepEqual([again.code, facts], [0, { kind: "rebuilt", shard: jobs[0]?.shard }]);
    ok(throughSeq > 0 && rows > 0);

    const second = await start();
    const kept = await second.journal.history.jobs({ limit: 10 });
    await second.stop();
    deepEqual(kept.jobs, jobs);
  } finally {
    await rm(data, { recursive: true });
  }
});

test("history rebuild says what is wrong with the line, and where there is nothing to rebuild", async () => {
  const wrong = await run("/nowhere", "--shard", "x");
  deepEqual(
    [wrong.code, wrong.notes],
    [2, ["history rebuild: --shard takes a number, such as 3 (see: millrace shards)"]],
  );
  const nowhere = await run(join(tmpdir(), "millrace-nowhere"));
  equal(nowhere.code, 1);
  match(nowhere.notes[0] ?? "", /^rebuild history: not-found \(.*there is no journal\)/);
});

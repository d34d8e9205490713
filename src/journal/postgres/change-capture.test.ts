// Tools that follow PostgreSQL's tables by logical decoding see a tracked job from its submission to its end.
import { deepEqual, ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import pg from "pg";
import { jobRow, jobRows } from "#journal/testing/history.ts";
import { own } from "#journal/testing/support.ts";
import { startPostgres } from "#testing/postgres.ts";
import { postgresJournal } from "./postgres.ts";

const postgres = await startPostgres({ durable: false, settings: { wal_level: "logical" } });
after(() => postgres.stop());

/** The page's own statements are what is tested. */
const page = readFileSync(new URL("../../../docs/how-to/change-data-capture.md", import.meta.url), "utf8");
const inDocs = [...page.matchAll(/^```sql\n(.*?)^```$/gms)].flatMap(([, block = ""]) => block.trim().split(/;\n?/));

const untracked = { stages: [], tasks: [], attempts: [], steps: [] };

for (const plugin of ["test_decoding", "pgoutput"] as const)
  test(`history can be followed with ${plugin}`, { skip: postgres.skip }, async () => {
    const url = await postgres.server().freshDatabase();
    const journal = postgresJournal({ url });
    const client = new pg.Client(url);
    const slot = `follower_${plugin}`;
    await client.connect();
    try {
      await journal.open({ clusterId: "test", shards: 1 });
      for (const statement of inDocs)
        await client.query(statement.replaceAll("warehouse", slot).replace("pgoutput", plugin));
      const epoch = await own(journal, 0);
      const tags = ["branch=main", "repo=mill"];
      const running = jobRow(0, 1, { phase: "RUNNING", endedAtMs: 0, seenAtMs: 1_500, tags, series: "ci", number: 7 });
      const submissions = [{ shard: 0, job: 1, request: "{}" }];
      await journal.history.record(0, { epoch, throughSeq: 1 }, { ...untracked, jobs: [running], submissions });
      const beat = { ...running, seenAtMs: 31_500 };
      await journal.history.record(0, { epoch, throughSeq: 1 }, { ...untracked, jobs: [beat] });
      const ended = jobRows(0, 1, { phase: "SUCCEEDED", tags, series: "ci", number: 7 });
      await journal.history.record(0, { epoch, throughSeq: 2 }, ended);
      // History's own commits are not waited for: a follower sees them when the log is flushed, a moment later.
      await client.query("set synchronous_commit = on");
      await client.query("select pg_logical_emit_message(true, 'flush', '')");
      await client.query(`set role ${slot}`);
      if (plugin === "pgoutput") {
        const { rows } = await client.query<{ kind: number }>(
          `select get_byte(data, 0) as kind from pg_logical_slot_get_binary_changes('${slot}', null, null,
            'proto_version', '1', 'publication_names', 'millrace_history')`,
        );
        const kinds = rows.map(({ kind }) => String.fromCodePoint(kind)).filter((kind) => "IUD".includes(kind));
        deepEqual(kinds, ["I", "I", "I", "U", "U"], "a row and two tags are inserted, then the row is updated");
        return;
      }
      const { rows } = await client.query<{ data: string }>(
        `select data from pg_logical_slot_get_changes('${slot}', null, null)`,
      );
      const jobs = rows.map(({ data }) => data).filter((data) => data.startsWith("table millrace.jobs:"));
      deepEqual(
        jobs.map((data) => [/: (INSERT|UPDATE)/.exec(data)?.[1], /phase\[text\]:'(\w+)'/.exec(data)?.[1]]),
        [
          ["INSERT", "RUNNING"],
          ["UPDATE", "RUNNING"],
          ["UPDATE", "SUCCEEDED"],
        ],
      );
      ok(jobs[1]?.includes("seen_at_ms[double precision]:31500"));
      const tagRows = rows.filter(({ data }) => data.startsWith("table millrace.tags: INSERT"));
      deepEqual(tagRows.length, 2);
    } finally {
      await client.query("reset role");
      await client.query(`select pg_drop_replication_slot('${slot}')`).catch(() => {});
      await client.end();
      await journal.close();
    }
  });

// The view that operators query, through both drivers: the same rows, the same answers.
import { deepEqual, equal } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import pg from "pg";
import { formatJob } from "#base/ids.ts";
import type { Journal } from "#journal/journal.ts";
import { postgresJournal } from "#journal/postgres/postgres.ts";
import { sqliteJournal } from "#journal/sqlite/sqlite.ts";
import { jobRow } from "#journal/testing/history.ts";
import { own } from "#journal/testing/support.ts";
import { clearAway } from "#testing/clear-away.ts";
import { startPostgres } from "#testing/postgres.ts";

const postgres = await startPostgres({ durable: false });
after(() => postgres.stop());

const none = { stages: [], tasks: [], attempts: [], steps: [] };
const large = 36 ** 9 + 35;
const waits = jobRow(0, 1, {
  name: "web 4f2c",
  phase: "WAITING",
  endedAtMs: 0,
  seenAtMs: 1_500,
  tags: ["commit=4f2c"],
});
const runs = jobRow(0, 36, { phase: "RUNNING", endedAtMs: 0, seenAtMs: 9_000, tags: ["branch=a=b", "sha=9e9e"] });
const stops = jobRow(0, 37, { phase: "CANCELLING", endedAtMs: 0 });
const well = jobRow(0, large, { phase: "SUCCEEDED", submittedAtMs: 5_000 });
const rows = [waits, runs, stops, well, jobRow(0, 2, { phase: "FAILED" }), jobRow(0, 3, { phase: "CANCELLED" })];

const expected = [
  [formatJob(0, 1), "4f2c", "web 4f2c", "queued", 1_500, true],
  [formatJob(0, 2), null, "job 2", "failed", 2_002, false],
  [formatJob(0, 3), null, "job 3", "failed", 2_003, false],
  [formatJob(0, 36), "9e9e", "job 36", "running", 9_000, true],
  [formatJob(0, 37), null, "job 37", "running", 2_037, true],
  [formatJob(0, large), null, `job ${large}`, "succeeded", 2_000 + large, false],
];

type ViewRow = Readonly<
  Record<"id" | "commit_sha" | "name" | "status", string> &
    Record<"created_at" | "last_heartbeat", string | Date> & { readonly live: boolean | number }
>;

async function recorded(journal: Journal): Promise<void> {
  await journal.open({ clusterId: "test", shards: 1 });
  const epoch = await own(journal, 0);
  await journal.history.record(0, { epoch, throughSeq: 1 }, { ...none, jobs: rows });
}

const shown = (found: readonly ViewRow[]): unknown =>
  found.map((row) => [
    row.id,
    row.commit_sha,
    row.name,
    row.status,
    new Date(row.last_heartbeat).getTime(),
    Boolean(row.live),
  ]);

const query = (view: string): string => `select id, created_at, commit_sha, name, status, last_heartbeat, live
  from ${view} where tenant = 'acme' order by created_at, id`;

/** In the order of the query: by the time of submission. */
const ordered = [0, 1, 2, 3, 4, 5].map((i) => expected[i]);

test("jobs_view in SQLite", async () => {
  const directory = mkdtempSync(join(tmpdir(), "millrace-view-"));
  const journal = sqliteJournal({ directory });
  await recorded(journal);
  const db = new DatabaseSync(join(directory, "history.db"), { readOnly: true });
  const found = db.prepare(query("jobs_view")).all() as unknown as ViewRow[];
  deepEqual(shown(found), ordered);
  equal(found[0]?.created_at, new Date(waits.submittedAtMs).toISOString());
  const counted = db.prepare("select status, count(*) as n from jobs_view group by status order by status").all();
  deepEqual(
    counted.map(({ status, n }) => [status, n]),
    [
      ["failed", 2],
      ["queued", 1],
      ["running", 2],
      ["succeeded", 1],
    ],
  );
  db.close();
  await journal.close();
  clearAway(directory);
});

test("jobs_view in PostgreSQL", { skip: postgres.skip }, async () => {
  const url = await postgres.server().freshDatabase();
  const journal = postgresJournal({ url });
  const client = new pg.Client(url);
  await client.connect();
  try {
    await recorded(journal);
    const { rows: found } = await client.query<ViewRow>(query("millrace.jobs_view"));
    deepEqual(shown(found), ordered);
    equal(new Date(found[0]?.created_at ?? 0).getTime(), waits.submittedAtMs);
    const { rows: one } = await client.query<ViewRow>("select * from millrace.jobs_view where commit_sha = '9e9e'");
    deepEqual(
      one.map(({ id, status }) => [id, status]),
      [[formatJob(0, 36), "running"]],
    );
  } finally {
    await client.end();
    await journal.close();
  }
});

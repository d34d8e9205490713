/** Releases one after the other on the real control plane with PostgreSQL; only the agents are simulated. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import { startPostgres } from "#testing/postgres.ts";
import { until } from "#testing/until.ts";
import type { Report } from "#bench/report.ts";
import { Crowd } from "./crowd.ts";
import { quantile } from "./quantile.ts";
import { commitOf, releaseBody } from "./service.ts";

type Plan = { readonly agents: number; readonly services: number; readonly seconds: number };

/** Of the 5,000 in an hour. */
const wantedPerMinute = 5_000 / 60;

export async function releases(report: Report, { agents, services, seconds }: Plan): Promise<void> {
  const what = "releases a minute on PostgreSQL";
  const postgres = await startPostgres();
  if (postgres.skip !== false)
    return report.target({ what, atLeast: wantedPerMinute, got: undefined, missing: postgres.skip });
  const folder = mkdtempSync(join(tmpdir(), "millrace-bench-releases-"));
  try {
    const url = await postgres.server().freshDatabase();
    const keyFile = join(folder, "vault.key");
    writeFileSync(keyFile, `k1 ${Buffer.alloc(32, 7).toString("base64")}\n`, { mode: 0o600 });
    const config = { journal: { kind: "postgres", url }, vault: { keyFile }, worker: { slots: services } };
    await using node = await NodeProcess.open(join(folder, "node"), config);
    const token = node.headers.authorization.replace("Bearer ", "");
    const crowdOf = { count: agents, services, attachAtOnce: 20, follows: true };
    await using crowd = new Crowd({ url: `http://${node.address}`, token, ...crowdOf });
    await crowd.attached(300_000);
    const repository = join(folder, "repository");
    const sha = commitOf(repository);
    const before = { cpu: node.cpuSeconds(), batches: await batchesIn(url) };
    const startedMs = performance.now();
    const isOver = (): boolean => performance.now() - startedMs > seconds * 1_000;
    const took: number[] = [];
    const failed: string[] = [];
    const one = async (service: number): Promise<void> => {
      while (!isOver()) {
        const begunMs = performance.now();
        const phase = await release(node, releaseBody(`s${service}`, repository, sha, [`svc=s${service}`]));
        if (phase === "SUCCEEDED") took.push(performance.now() - begunMs);
        else failed.push(phase);
      }
    };
    await Promise.all(Array.from({ length: services }, async (_, service) => await one(service)));
    const minutes = (performance.now() - startedMs) / 60_000;
    const cpu = node.cpuSeconds() - before.cpu;
    const batches = (await batchesIn(url)) - before.batches;
    const sorted = took.toSorted((a, b) => a - b);
    report.table(
      `Releases of ${services} services to ${agents} agents, each in two waves`,
      ["a minute", "p50 ms", "p99 ms", "CPU of the node for each, ms", "commits for each", "failed"],
      [
        [
          (took.length / minutes).toFixed(1),
          quantile(sorted, 0.5).toFixed(0),
          quantile(sorted, 0.99).toFixed(0),
          ((cpu * 1_000) / took.length).toFixed(0),
          (batches / took.length).toFixed(1),
          failed.length,
        ],
      ],
    );
    report.figure("releases_per_minute", took.length / minutes);
    report.target({ what, atLeast: wantedPerMinute, got: took.length / minutes });
    report.target({ what: "commits of the kernel for a release", atMost: 500, got: batches / took.length });
    if (failed.length > 0) throw new Error(`releases ended ${failed.join(", ")}`);
  } finally {
    await postgres.stop();
    clearAway(folder);
  }
}

async function release(node: NodeProcess, body: object): Promise<string> {
  const headers = { ...node.headers, "content-type": "application/json" };
  const at = `http://${node.address}`;
  const asked = await fetch(`${at}/v1/deploy/releases`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!asked.ok) throw new Error(`release: ${asked.status} ${await asked.text()}`);
  const { job } = (await asked.json()) as { job: string };
  let phase = "";
  const isOver = async (): Promise<boolean> => {
    const answer = await fetch(`${at}/v1/jobs/${job}`, { headers });
    ({ phase } = (await answer.json()) as { phase: string });
    return /^(SUCCEEDED|FAILED|CANCELLED)$/.test(phase);
  };
  await until(`release ${job} has ended`, isOver, { limitMs: 300_000, everyMs: 100 });
  return phase;
}

/** Each row of the log is one commit of a shard's. */
async function batchesIn(url: string): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const schemas = await client.query<{ schema: string }>(
      "select table_schema as schema from information_schema.tables where table_name = 'log'",
    );
    const schema = schemas.rows[0]?.schema ?? "millrace";
    const rows = await client.query<{ last: string }>(`select coalesce(sum(seq), 0) as last from
      (select max(seq) as seq from ${client.escapeIdentifier(schema)}.log group by shard) as each_shard`);
    return Number(rows.rows[0]?.last ?? 0);
  } finally {
    await client.end();
  }
}

/** Rollbacks of real agents to a version whose bytes they still have: from the call until each answers with it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { DeployFleet } from "#e2e/deploy/fleet.ts";
import { until } from "#testing/until.ts";
import type { Report } from "#bench/report.ts";
import { quantile } from "./quantile.ts";

const service = `
service: web
build: { run: "mkdir out && cp run.sh out/", output: out }
run: { exec: [sh, run.sh], probe: { exec: "true", within: 5s, every: 50ms }, drain: 1s }
targets: { labels: [role=web], regions: [eu] }
`;
const limits = { limitMs: 120_000, everyMs: 20 };

type Seen = { readonly machine: string; readonly reports: readonly { readonly running: string | null }[] };

export async function rollbacks(report: Report, machines: number, rounds: number): Promise<void> {
  const names = Array.from({ length: machines }, (_, i) => `m${i + 1}`);
  await using fleet = await DeployFleet.open(names);
  const call = async (method: string, path: string, body?: object): Promise<unknown> => {
    const headers = { ...fleet.node.headers, "content-type": "application/json" };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(`http://${fleet.node.address}${path}`, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? undefined : (JSON.parse(text) as unknown);
  };
  const seen = async (): Promise<readonly Seen[]> =>
    ((await call("GET", "/v1/deploy/machines")) as { machines: Seen[] }).machines;
  const ended = async (job: string): Promise<void> =>
    await until(`${job} has ended`, async () => /^(SUCC|FAIL|CANCELLED)/.test(await fleet.phase(job)), limits);
  await until("all machines are attached", async () => (await seen()).length === machines, limits);
  for (const version of ["one", "two"]) {
    writeFileSync(join(fleet.repository, "run.sh"), `# ${version}\nexec sleep 100000\n`);
    const sha = fleet.commit(service, "");
    const body = { service: parse(service) as object, sha, repository: fleet.repository };
    await ended(((await call("POST", "/v1/deploy/releases", body)) as { job: string }).job);
  }
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const before = new Map((await seen()).map((one) => [one.machine, one.reports[0]?.running]));
    const startedMs = performance.now();
    const { job } = (await call("POST", "/v1/deploy/services/web/rollback", { regions: ["eu"] })) as { job: string };
    const back = new Set<string>();
    const look = async (): Promise<boolean> => {
      for (const { machine, reports } of await seen())
        if (
          !back.has(machine) &&
          typeof reports[0]?.running === "string" &&
          reports[0].running !== before.get(machine)
        ) {
          back.add(machine);
          times.push(performance.now() - startedMs);
        }
      return back.size === machines;
    };
    await until("all machines are back", look, limits);
    await ended(job);
  }
  const sorted = times.toSorted((a, b) => a - b);
  const row = [0.5, 0.99].map((share) => Math.round(quantile(sorted, share)));
  report.table(`Rollbacks of ${machines} real agents, ${times.length} times`, ["p50 ms", "p99 ms"], [row]);
  report.figure("rollback_p99_ms", quantile(sorted, 0.99));
  report.target({ what: "rollback with bytes on the disk, p99, s", atMost: 10, got: quantile(sorted, 0.99) / 1_000 });
}

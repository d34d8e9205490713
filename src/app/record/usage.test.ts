/** Usage of a real node: counted by tenant and door, through a restart. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { showJob, submitJob } from "#api/jobs.ts";
import { showUsage } from "#api/usage.ts";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-usage-"));
after(() => clearAway(folder));
const config = Config.parse({ cluster: { shards: 2 }, edge: { listen: ["127.0.0.1:0"] }, node: { stopWithin: "1s" } });

const start = (): Promise<Running> => startNode(config, dataFolder(folder), { log: () => {} });
const to =
  ({ edgeAddresses, owner }: Running): Fetch =>
  (path, init) =>
    fetch(`http://${edgeAddresses[0]}${path}`, {
      ...init,
      headers: { ...(init.headers as object), authorization: `Bearer ${owner}` },
    });

async function run(ask: Fetch, line: string, tags: Readonly<Record<string, string>> = {}): Promise<void> {
  const { job } = await callEndpoint(ask, submitJob, { body: { command: ["sh", "-c", line], tags } });
  const hasEnded = async (): Promise<boolean> =>
    (await callEndpoint(ask, showJob, { params: { job } })).endedAt !== undefined;
  await until("it has ended", hasEnded, { limitMs: 60_000 });
}

test(
  "what was used is added up by tenant, door and repository, also before a restart",
  { timeout: 90_000 },
  async () => {
    const first = await start();
    await run(to(first), "sleep 0.3; echo one");
    await run(to(first), "exit 3", { repository: "mill/flour" });
    const metrics = await (await to(first)("/metrics", {})).text();
    match(metrics, /^millrace_usage_tasks_total\{tenant="default",door="shell"\} 1$/m);
    await first.stop();
    const second = await start();
    try {
      const { items, from, to: last } = await callEndpoint(to(second), showUsage, {});
      equal(items.length, 1);
      const [item] = items;
      ok(item);
      const { slotSeconds, ...counts } = item;
      deepEqual(counts, {
        tenant: "default",
        door: "shell",
        cpuSeconds: 0,
        tasks: 1,
        attempts: 2,
        outputBytes: 4,
        keptBytes: 0,
        keptNames: 0,
      });
      ok(slotSeconds >= 0.3 && slotSeconds < 60, String(slotSeconds));
      ok(from.endsWith("-01") && from <= last);
      const { items: byRepository } = await callEndpoint(to(second), showUsage, { query: { by: "repository" } });
      deepEqual(
        byRepository.map(({ repository, tasks, attempts }) => [repository, tasks, attempts]),
        [
          [undefined, 1, 1],
          ["mill/flour", 0, 1],
        ],
      );
      const old = await callEndpoint(to(second), showUsage, { query: { from: "2020-01-01", to: "2020-01-31" } });
      deepEqual(old.items, []);
      equal((await to(second)("/v1/usage?from=2020-01-01&to=2026-01-01", {})).status, 400);
    } finally {
      await second.stop();
    }
  },
);

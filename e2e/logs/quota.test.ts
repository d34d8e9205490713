/** A tenant that prints more than `cluster.tenantOutputMax` at once: its log says so, and its tasks go on. */
import { equal, match, ok } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { logOfTask, showJob, submitJob } from "#api/jobs.ts";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

test("output beyond a tenant's limit is left out, with a line that says so", { timeout: 60_000 }, async () => {
  const root = mkdtempSync(join(tmpdir(), "millrace-quota-"));
  const said: string[] = [];
  const config = Config.parse({
    cluster: { shards: 1, tenantOutputMax: "1MiB" },
    edge: { listen: ["127.0.0.1:0"] },
    worker: { slots: 1 },
  });
  const node = await startNode(config, dataFolder(root), { log: (line) => said.push(line) });
  try {
    const headers = { authorization: `Bearer ${node.owner}` };
    const ask: Fetch = (path, init) =>
      fetch(`http://127.0.0.1:${node.edgePorts[0]}${path}`, {
        ...init,
        headers: { ...(init.headers as object), ...headers },
      });
    const run = async (line: string): Promise<string> => {
      const { job } = await callEndpoint(ask, submitJob, { body: { command: ["sh", "-c", line] } });
      const phase = async () => (await callEndpoint(ask, showJob, { params: { job } })).phase;
      await until("the job has ended", async () => ["SUCCEEDED", "FAILED"].includes(await phase()), {
        limitMs: 60_000,
        everyMs: 50,
      });
      equal(await phase(), "SUCCEEDED");
      const log = await callEndpoint(ask, logOfTask, { params: { job, task: "run/1" }, query: {} });
      return await log.text();
    };
    const print = "seq 100000 | head -c 500000";
    const text = await run(`for i in 1 2 3 4 5 6; do ${print}; sleep 0.4; done`);
    ok(text.length > 400_000 && text.length < 1_100_000, `${text.length} bytes`);
    match(text, /\n\S+ \* w output beyond this is not kept: the tenant has 1MiB of live output.*tenantOutputMax\)\n$/);
    ok(said.some((line) => /output of task .* is not kept any more: tenant .* is at its limit/.test(line)));
    equal((await run(print)).length, 500_000, "what has ended counts no more");
  } finally {
    await node.stop();
    clearAway(root);
  }
});

// The audit trail of a real node: changes are recorded, secrets are not, and a forged trail is found.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { clearAway } from "#testing/clear-away.ts";
import { cliLine } from "#testing/cli-line.ts";

test("changes by commands are in the trail, in order, and a forged trail is found", { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-audit-"));
  after(() => clearAway(folder));
  const data = dataFolder(join(folder, "data"));
  const config = Config.parse({
    cluster: { shards: 1 },
    edge: { listen: ["127.0.0.1:0"] },
    journal: { kind: "memory" },
    worker: { enabled: false },
  });
  const node = await startNode(config, data, { log: () => {} });
  after(() => node.stop());
  const line = (...args: readonly string[]) => cliLine(data.path, ...args);
  const file = join(folder, "value");
  await writeFile(file, "hunter2-hunter2");
  equal((await line("secret", "set", "db", "--file", file)).code, 0);
  equal((await line("secret", "delete", "none")).code, 1);
  equal((await line("secret", "list")).code, 0);
  equal((await line("tenant", "set", "night", "--weight", "2")).code, 0);
  const exported = (await line("audit", "export")).out;
  const calls = exported.map((text) => {
    const { seq, call, outcome, who, of } = JSON.parse(text) as Record<string, unknown>;
    return [seq, call, outcome, (who as { name: string }).name, (of as { name: string }).name];
  });
  deepEqual(calls.slice(0, 3), [
    [1, "PUT /v1/secrets/{name+}", "asked", "owner", "db"],
    [2, "DELETE /v1/secrets/{name+}", "asked", "owner", "none"],
    [3, "DELETE /v1/secrets/{name+}", "failed", "owner", "none"],
  ]);
  ok(!exported.join().includes("hunter2"));
  match((await line("audit", "verify")).out[0] ?? "", /^intact: \d+ entries, 1 to \d+, [0-9a-f]{64}$/);
  const forged = join(folder, "forged.ndjson");
  await writeFile(forged, exported.map((text) => text.replace('"owner"', '"someone"')).join("\n"));
  const verdict = await line("audit", "verify", forged);
  deepEqual([verdict.code, verdict.out[0]], [1, "broken at entry 1: the entry was changed: its hash does not fit it"]);
});

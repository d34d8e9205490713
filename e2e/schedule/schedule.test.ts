// Schedules on real nodes: commands, and owners that are killed at an instant (schedule-kills.ts does it 50 times).
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { clearAway } from "#testing/clear-away.ts";
import { cliLine } from "#testing/cli-line.ts";
import { killAtInstants } from "./schedule-kills.ts";

const folder = await mkdtemp(join(tmpdir(), "millrace-schedule-"));
after(() => clearAway(folder));

describe("schedules", { timeout: 120_000 }, () => {
  test("are added, shown, paused, resumed and removed by commands", async () => {
    const data = dataFolder(join(folder, "commands"));
    const config = Config.parse({
      cluster: { shards: 1 },
      edge: { listen: ["127.0.0.1:0"] },
      journal: { kind: "memory" },
      worker: { enabled: false },
    });
    const node = await startNode(config, data, { log: () => {} });
    after(() => node.stop());
    const line = (...args: readonly string[]) =>
      cliLine(data.path, "schedule", ...args.slice(0, 2), "--data", data.path, ...args.slice(2));
    const added = await line("add", "nightly", "--cron", "30 2 29 2 *", "--zone", "Europe/Berlin", "--", "true");
    equal(added.notes.join(), "");
    match(added.out[0] ?? "", /^nightly: 30 2 29 2 \* in Europe\/Berlin, once of missed instants, made by owner$/);
    deepEqual((await line("next", "nightly", "--count", "2")).out.length, 2);
    match((await line("list")).out[1] ?? "", /nightly .*2028-02-29T01:30/);
    match((await line("pause", "nightly")).out.join(), /next: paused/);
    match((await line("resume", "nightly")).out.join(), /next: 2028/);
    for (const [cron, why] of [
      ["@daily", /five fields/],
      ["0 0 L * *", /only numbers/],
    ] as const) {
      const refused = await line("add", "wrong", "--cron", cron, "--", "true");
      equal(refused.code, 1);
      match(refused.notes.join(), why);
    }
    deepEqual((await line("remove", "nightly")).out, ["nightly: removed"]);
    equal((await line("show", "nightly")).code, 1);
  });

  test("SC1 SC2 an instant has one job, although owners are killed at it", async () => {
    const { instants, jobs } = await killAtInstants(join(folder, "kills"), 3);
    ok(instants >= 3);
    equal(jobs, instants);
  });
});

import { deepEqual, equal, match } from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { until } from "#testing/until.ts";
import { Bench, Lab } from "#e2e/node/build/execution-lab.ts";
import { orderFromCommand } from "#app/job-order.ts";

const skip = process.platform !== "linux" && "needs linux: /proc";

function launchersOf(lab: Lab): readonly string[] {
  return globSync("/proc/[0-9]*/cmdline").flatMap((path) => {
    try {
      const words = readFileSync(path, "utf8").split("\0");
      const at = words.findIndex((word) => word.endsWith("/launcher.ts"));
      return at >= 0 && words[at + 1]?.startsWith(lab.root) ? [words[at + 1] ?? ""] : [];
    } catch {
      return [];
    }
  });
}

test("a node has one launcher, for actions and for commands, and none when it has stopped", { skip }, async () => {
  const lab = await Lab.open({ worker: { slots: 2 } });
  try {
    const { client } = lab.node ?? {};
    const order = orderFromCommand(["sh", "-c", "id -u; echo hello"], { tenant: "default" });
    const { jobId } = (await client?.submit(order)) ?? { jobId: "" };
    const view = async () => (await client?.job(jobId))?.view;
    await until("the command has ended", async () => (await view())?.endedAtMs !== undefined);
    match((await view())?.tasks[0]?.result?.payload ?? "", new RegExp(`"${process.getuid?.()}\\\\nhello\\\\n"`));
    const bench = new Bench(lab.client());
    const { response } = await bench.execute(await bench.sh("echo action"));
    equal(response.result?.exitCode, 0);
    equal(launchersOf(lab).length, 1);
  } finally {
    await lab[Symbol.asyncDispose]();
  }
  await until("it is gone", () => launchersOf(lab).length === 0);
  deepEqual(launchersOf(lab), []);
});

/** The package as npm installs it: below node_modules, where Node strips no types by itself. */
import { equal, match, ok } from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-install-"));
after(() => clearAway(folder));
const root = join(import.meta.dirname, "..", "..");
const npm = (...args: readonly string[]): string =>
  execFileSync("npm", args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: 180_000 });

test("the installed package starts a node with its launcher, and runs a job", { timeout: 300_000 }, async () => {
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  npm("pack", root, "--ignore-scripts", "--pack-destination", folder);
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"));
  ok(tarball);
  npm("install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", `./${tarball}`);
  const command = join(folder, "node_modules", ".bin", "millrace");
  const data = join(folder, "data");
  const node = spawn(command, ["up", "--data", data, "--set", "edge.listen="], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(node, "exit");
  let log = "";
  const ready = Promise.withResolvers<void>();
  for (const stream of [node.stdout, node.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      if (log.includes("job submit")) ready.resolve();
    });
  try {
    await Promise.race([ready.promise, exited]);
    equal(node.exitCode, null, log);
    const submit = ["job", "submit", "--data", data, "--follow", "--", "echo", "hello"];
    match(execFileSync(command, submit, { cwd: folder, encoding: "utf8", timeout: 60_000 }), /hello/);
    equal(log.includes("start launcher"), false, log);
  } finally {
    node.kill();
    await exited;
  }
});

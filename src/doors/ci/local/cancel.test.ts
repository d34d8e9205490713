/** Ctrl-C at a terminal: the whole group of processes hears it. */
import { equal, ok } from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

const program = join(import.meta.dirname, "../../../../bin/millrace.js");
const skip = process.platform === "win32" ? "needs signals" : false;

test(
  "CI-11: Ctrl-C cancels once, steps with always() run, and nothing is left behind",
  { skip, timeout: 60_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "millrace-ci-cancel-"));
    try {
      const temp = join(folder, "temp");
      for (const path of [temp, join(folder, ".github/workflows")]) mkdirSync(path, { recursive: true });
      const steps = [
        "- run: \"trap 'echo got INT; exit 0' INT; echo ready; sleep 60 & wait\"",
        "- { if: always(), run: 'echo cleaned ${{ job.status }}' }",
      ];
      const text = `on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n      ${steps.join("\n      ")}\n`;
      writeFileSync(join(folder, ".github/workflows/w.yml"), text);
      writeFileSync(join(folder, ".gitignore"), "temp\n");
      execFileSync("git", ["-C", folder, "init", "--quiet"]);
      const child = spawn(process.execPath, [program, "ci", "run"], {
        cwd: folder,
        env: { ...process.env, TMPDIR: temp },
        detached: true,
      });
      let shown = "";
      child.stdout.on("data", (bytes: Buffer) => (shown += bytes.toString()));
      const exited = once(child, "exit");
      await until("the step runs", () => shown.includes("  ready"), { limitMs: 60_000 });
      process.kill(-(child.pid ?? 0), "SIGINT");
      const [code] = (await exited) as [number];
      equal(code, 1, shown);
      ok(shown.includes("got INT") && shown.includes("cleaned cancelled") && shown.includes("run: cancelled"), shown);
      equal(readdirSync(temp).length, 0);
    } finally {
      clearAway(folder);
    }
  },
);

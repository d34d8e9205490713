/** Runs the hostile suites once more as a plain user, in a file of its own, so that both runs overlap. */
import { equal, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { bwrapMissing } from "#testing/bubblewrap.ts";
import { clearAway } from "#testing/clear-away.ts";
import { otherUserCannotRun } from "#testing/postgres-user.ts";
import { userFolderVariable } from "./user-folder.ts";

const uid = 1_835_700_001;

/** Each suite with the number of tests that must pass, so that a run that skips everything fails. */
const suites = [
  { file: "hostile.test.ts", passMin: 15, skip: false },
  { file: "task-rights.test.ts", passMin: 4, skip: false },
  { file: "hostile-secrets.test.ts", passMin: 1, skip: bwrapMissing() },
] as const;

const noUser = (process.getuid?.() !== 0 && "needs root: to become a plain user") || otherUserCannotRun();

for (const { file, passMin, skip } of suites)
  test(`${file} as a plain user`, { skip: noUser || skip, timeout: 280_000 }, async () => {
    const folder = mkdtempSync("/var/lib/millrace-user-");
    try {
      chmodSync(folder, 0o711);
      chownSync(folder, uid, uid);
      const user = ["--reuid", String(uid), "--regid", String(uid), "--clear-groups"];
      const path = join(import.meta.dirname, file);
      const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", [userFolderVariable]: folder, HOME: "/nonexistent" };
      const command = [...user, process.execPath, "--test", path];
      const child = spawn("setpriv", command, { env, cwd: "/", stdio: ["ignore", "pipe", "inherit"] });
      let out = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
      equal(await new Promise((resolve) => child.once("close", resolve)), 0, out);
      ok(Number(/^(?:#|ℹ) pass (\d+)$/m.exec(out)?.[1]) >= passMin, out);
    } finally {
      clearAway(folder);
    }
  });

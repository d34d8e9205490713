import { equal } from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { isCurrent } from "./compile-cache.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-compile-cache-"));
after(() => clearAway(root));

test("the one file of the job's program counts only while its modules are as they were", async () => {
  equal(await isCurrent(root), false);
  mkdirSync(join(root, "src"));
  mkdirSync(join(root, "dist", "jobs"), { recursive: true });
  writeFileSync(join(root, "src", "a.ts"), "one");
  const hash = createHash("sha256").update("one").digest("hex");
  writeFileSync(join(root, "dist", "jobs", "inputs.json"), JSON.stringify({ "src/a.ts": hash }));
  equal(await isCurrent(root), true);
  writeFileSync(join(root, "src", "a.ts"), "two");
  equal(await isCurrent(root), false);
});

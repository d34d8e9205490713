/** Actions on a node whose authoritative store is a tier, not its own disk. */
import { equal } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Bench, Lab } from "./execution-lab.ts";
import { clearAway } from "#testing/clear-away.ts";

const skip = process.platform === "linux" ? false : "needs linux: actions are run there only";

test("outputs of an action are in the tier, and its result counts", { skip }, async () => {
  const directory = mkdtempSync(join(tmpdir(), "millrace-tier-"));
  try {
    await using lab = await Lab.open({ blobs: { kind: "disk", authoritative: { kind: "directory", directory } } });
    const bench = new Bench(lab.client());
    const action = await bench.sh("echo ground > flour; echo said", { outputPaths: ["flour"] });
    const { response } = await bench.execute(action);
    equal(response.result?.exitCode, 0);
    equal(response.result?.outputFiles.length, 1);
    equal((await bench.execute(action)).response.cachedResult, true);
  } finally {
    clearAway(directory);
  }
});

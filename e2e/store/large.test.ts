/** A slice of `npm run store:large`, for every run of the suite. */
import { ok } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { memoryMbMax } from "./large.ts";
import { runLargeTrial } from "./large-trial.ts";
import { clearAway } from "#testing/clear-away.ts";

const seed = process.env["LARGE_SEED"] ?? String(Date.now() % 2 ** 31);
const title = "a large blob: killed in the middle, gone on with, read in ranges, split, spliced; memory is bounded";

test(`${title} (LARGE_SEED=${seed})`, { timeout: 240_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-large-"));
  try {
    const say = (line: string): void => t.diagnostic(line);
    const { phases } = await runLargeTrial({ folder, sizeBytes: 200_000_001, seed, say });
    for (const { name, peakMb } of phases) ok(peakMb > 0 && peakMb <= memoryMbMax, `${name}: ${peakMb} MB`);
  } finally {
    clearAway(folder);
  }
});

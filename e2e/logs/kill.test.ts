import { ok } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { killWhilePrinting } from "./kill.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-kill-logs-"));
after(() => clearAway(root));

test(
  "B8: a worker's node is killed while it prints: another node has all that was read",
  { timeout: 150_000 },
  async (context) => {
    const { seenBytes, keptBytes, wholeBytes, tookMs } = await killWhilePrinting(root, 4_000_000);
    context.diagnostic(`seen ${seenBytes}, kept ${keptBytes}, then ${wholeBytes} bytes in ${Math.round(tookMs)} ms`);
    ok(keptBytes < wholeBytes, "it was killed in the middle");
  },
);

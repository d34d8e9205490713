/** The same at full size: `node bin/node.js e2e/logs/main.ts [bytes]`, 100 MB unless told otherwise. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clearAway } from "#testing/clear-away.ts";
import { killWhilePrinting } from "./kill.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-kill-logs-"));
try {
  const bytes = Number(process.argv[2] ?? 100_000_000);
  process.stdout.write(`${JSON.stringify(await killWhilePrinting(root, bytes))}\n`);
} finally {
  clearAway(root);
}

/** `npm run store:large -- --gb 10`: one blob of that size, killed in the middle. Needs four times as much disk. */
import { mkdtempSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runLargeTrial } from "./large-trial.ts";
import { clearAway } from "#testing/clear-away.ts";

/** However large the blob is. */
export const memoryMbMax = 600;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { gb: { type: "string" }, in: { type: "string" }, seed: { type: "string" } },
  });
  const sizeBytes = Math.round(Number(values.gb ?? 10) * 1e9);
  const seed = values.seed ?? String(Date.now() % 2 ** 31);
  const parent = values.in ?? tmpdir();
  const { bavail, bsize } = statfsSync(parent);
  if (bavail * bsize < sizeBytes * 4) {
    console.error(
      `store:large: ${parent} has ${bavail * bsize} bytes free and needs ${sizeBytes * 4}; see --in FOLDER`,
    );
    process.exitCode = 2;
    return;
  }
  const folder = mkdtempSync(join(parent, "millrace-large-"));
  const say = (line: string): void => console.log(line);
  say(`${sizeBytes} bytes, seed ${seed}`);
  try {
    const { phases } = await runLargeTrial({ folder, sizeBytes, seed, say });
    const peakMb = Math.max(...phases.map((phase) => phase.peakMb));
    say(`memory of the node at most ${peakMb} MB; ${memoryMbMax} MB are allowed`);
    if (!(peakMb > 0 && peakMb <= memoryMbMax)) process.exitCode = 1;
  } finally {
    clearAway(folder);
  }
}

if (import.meta.main) await main();

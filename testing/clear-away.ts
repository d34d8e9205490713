/** Removes a test's folder in which something may still write: what was just killed, or a launcher that lingers. */
import { rmSync } from "node:fs";

export function clearAway(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 1_000 });
}

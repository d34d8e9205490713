/** Removes a test's folder in which a process may still write: one that was just killed, or a lingering launcher. */
import { rmSync } from "node:fs";

export function clearAway(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 1_000 });
}

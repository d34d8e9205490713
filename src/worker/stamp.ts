/**
 * Detects changes on disk. Every change to a file's or folder's content, names, mode or attributes updates its ctime,
 * which no process can set.
 */
import { chmodSync, lstatSync, mkdtempSync, rmdirSync } from "node:fs";
import { join } from "node:path";

export type Stamp = { readonly ino: number; readonly ctimeMs: number };

export function stampOf(path: string): Stamp {
  const { ino, ctimeMs } = lstatSync(path);
  return { ino, ctimeMs };
}

export function isAsStamped(path: string, { ino, ctimeMs }: Stamp): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found !== undefined && found.ino === ino && found.ctimeMs === ctimeMs;
}

const triesForClock = 64;

/**
 * Whether every change shows in the ctime. Before Linux 6.13 file times have the resolution of a timer tick, so that
 * two changes within one tick look the same. Since then, a change after a stat gets a time of its own.
 */
export function tellsChanges(folder: string): boolean {
  const probe = mkdtempSync(join(folder, "probe-"));
  try {
    for (let tries = 0; tries < triesForClock; tries += 1) {
      const { ctimeMs } = lstatSync(probe);
      chmodSync(probe, tries % 2 === 0 ? 0o700 : 0o711);
      if (lstatSync(probe).ctimeMs === ctimeMs) return false;
    }
    return true;
  } finally {
    rmdirSync(probe);
  }
}

/**
 * Whether something on the disk is as it was. Whatever is done to a file or folder, to its content, names, rights or
 * attributes, changes its ctime, which nobody can set.
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
 * Whether every change shows there. Before Linux 6.13, times of files are those of the last tick, so that a change
 * soon after another does not. Since then, what was looked at gets a time of its own with the next change.
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

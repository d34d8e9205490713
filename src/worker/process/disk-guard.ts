/** When a disk is nearly full, whoever fills it has to stop: the run whose folder has grown the most. */
import { lstatSync, readdirSync, statfsSync } from "node:fs";
import { join } from "node:path";

/** A run that wrote less is not what filled the disk. */
const fillerBytesMin = 64 * 1024 * 1024;
const entriesMax = 20_000;

export function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

/** The one that has written most, if it is enough to matter. */
export function fillerAmong<T>(runs: readonly T[], folderOf: (run: T) => string): T | undefined {
  let most = fillerBytesMin;
  let filler: T | undefined;
  for (const run of runs) {
    const bytes = ownBytes(folderOf(run));
    if (bytes < most) continue;
    most = bytes;
    filler = run;
  }
  return filler;
}

/** What is in the folder and nowhere else; of a folder with very many files, of as many as can be looked at. */
export function ownBytes(folder: string): number {
  let bytes = 0;
  let entries = 0;
  const folders = [folder];
  for (let at = folders.pop(); at !== undefined && entries < entriesMax; at = folders.pop())
    for (const entry of readQuietly(at)) {
      entries += 1;
      if (entry.isDirectory()) folders.push(join(at, entry.name));
      const stats = lstatSync(join(at, entry.name), { throwIfNoEntry: false });
      if (stats?.isFile() && stats.nlink === 1) bytes += stats.blocks * 512;
    }
  return bytes;
}

function readQuietly(path: string) {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch {
    return []; // gone meanwhile, or closed to us
  }
}

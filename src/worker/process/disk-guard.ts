/**
 * When a disk is nearly full, of bytes or of files, whoever fills it has to stop: the run whose folder has grown the
 * most.
 */
import { lstatSync, readdirSync, statfsSync } from "node:fs";
import { join } from "node:path";

/** A run that made less is not what filled the disk. */
const fillerMin: Weight = { bytes: 64 * 1024 * 1024, files: 5_000 };
/** Of one folder, so many are looked at; what has more counts as having so many. */
const entriesMax = 20_000;
/** With fewer left nobody can be sure to make another file; of a disk that has a number at all. */
const freeFilesMin = 10_000;

export type Weight = { readonly bytes: number; readonly files: number };

export function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

/** What there is too little of, if anything. */
export function shortOf(path: string, freeBytesMin: number): keyof Weight | undefined {
  const { bavail, bsize, files, ffree } = statfsSync(path);
  if (bavail * bsize < freeBytesMin) return "bytes";
  return files > 0 && ffree < Math.min(freeFilesMin, files / 20) ? "files" : undefined;
}

/** The one that has made most of it, if it is enough to matter. */
export function fillerAmong<T>(
  runs: readonly T[],
  folderOf: (run: T) => string,
  what: keyof Weight = "bytes",
): T | undefined {
  let most = fillerMin[what];
  let filler: T | undefined;
  for (const run of runs) {
    const made = ownWeight(folderOf(run))[what];
    if (made < most) continue;
    most = made;
    filler = run;
  }
  return filler;
}

/** What is in the folder and nowhere else; of a folder with very many files, of as many as can be looked at. */
export function ownWeight(folder: string): Weight {
  let bytes = 0;
  let files = 0;
  let entries = 0;
  const folders = [folder];
  for (let at = folders.pop(); at !== undefined && entries < entriesMax; at = folders.pop())
    for (const entry of readQuietly(at)) {
      entries += 1;
      if (entry.isDirectory()) folders.push(join(at, entry.name));
      const stats = lstatSync(join(at, entry.name), { throwIfNoEntry: false });
      // Inputs are links to files that others have as well.
      if (!stats || (stats.isFile() && stats.nlink > 1)) continue;
      files += 1;
      bytes += stats.blocks * 512;
    }
  return { bytes, files };
}

function readQuietly(path: string) {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch {
    return []; // gone meanwhile, or closed to us
  }
}

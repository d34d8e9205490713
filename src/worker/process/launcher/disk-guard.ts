/**
 * When a disk is nearly full, of bytes or of files, the run whose folder has grown the most is ended. Deleted files and
 * unreadable folders do not show, so then it is the run that wrote the most bytes.
 */
import { lstatSync, readdirSync, statfsSync, type Dirent, type Stats } from "node:fs";
import { join } from "node:path";

/** A run that made less did not fill the disk. */
const fillerMin: Weight = { bytes: 64 * 1024 * 1024, files: 5_000 };
/** How many entries of a folder are looked at; larger folders count as this many. */
const entriesMax = 20_000;
/** With fewer free inodes, creating a file may fail; only for file systems that report a number. */
const freeFilesMin = 10_000;

export type Weight = { readonly bytes: number; readonly files: number };

export type Suspect = {
  readonly folder: string;
  /** The run's user, if it is not ours. */
  readonly uid: number | undefined;
  /** Bytes that its processes have written to disks. */
  readonly writtenBytes: () => number;
};

export function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
}

/** What is short, if anything. */
export function shortOf(path: string, freeBytesMin: number): keyof Weight | undefined {
  const { bavail, bsize, files, ffree } = statfsSync(path);
  if (bavail * bsize < freeBytesMin) return "bytes";
  return files > 0 && ffree < Math.min(freeFilesMin, files / 20) ? "files" : undefined;
}

/** The run that made most of it, if it is enough to matter. */
export function fillerAmong<T>(
  runs: readonly T[],
  suspectOf: (run: T) => Suspect,
  what: keyof Weight = "bytes",
): T | undefined {
  const made = (run: T): number => ownWeight(suspectOf(run))[what];
  const written = (run: T): number => suspectOf(run).writtenBytes();
  return heaviest(runs, made, fillerMin[what]) ?? heaviest(runs, written, fillerMin.bytes);
}

function heaviest<T>(runs: readonly T[], weigh: (run: T) => number, min: number): T | undefined {
  let most = min;
  let found: T | undefined;
  for (const run of runs) {
    const weight = weigh(run);
    if (weight < most) continue;
    most = weight;
    found = run;
  }
  return found;
}

/** What the run has made in its folder; for very many files, of those that are looked at. */
export function ownWeight({ folder, uid }: Pick<Suspect, "folder" | "uid">): Weight {
  let bytes = 0;
  let files = 0;
  let entries = 0;
  const seen = new Set<number>();
  const folders = [folder];
  for (let at = folders.pop(); at !== undefined && entries < entriesMax; at = folders.pop()) {
    const read = readQuietly(at);
    // An unreadable folder may be full.
    if (read === "closed") files += fillerMin.files;
    for (const entry of read === "closed" ? [] : read) {
      entries += 1;
      if (entry.isDirectory()) folders.push(join(at, entry.name));
      const stats = lookQuietly(join(at, entry.name));
      if (stats?.isFile() && stats.nlink > 1) {
        // Inputs are hard links to our files if the run has another user, and copies otherwise.
        if (seen.has(stats.ino) || (uid !== undefined && stats.uid !== uid)) continue;
        seen.add(stats.ino);
      }
      files += 1;
      bytes += (stats?.blocks ?? 0) * 512;
    }
  }
  return { bytes, files };
}

/** A folder may be listable but not searchable. */
function lookQuietly(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

function readQuietly(path: string): readonly Dirent[] | "closed" {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES" ? "closed" : []; // deleted meanwhile
  }
}

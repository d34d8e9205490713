/** Makes an attempt's folder as good as new after a run, except for inputs that stay. */
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  rmdirSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import type { LeftInputs } from "#worker/stage/left-inputs.ts";
import { isAsStamped, stampOf, type Stamp } from "#worker/stamp.ts";
import { makeFile, makeRoot, rootMode, type AttemptFolder } from "./attempt-folder.ts";
import { bytesOf, emptyFolder } from "./remove-folder.ts";

export type FileName = "stdout" | "stderr" | "status";

/** What is known about a folder that may be reused. */
export type Known = {
  readonly uid: number;
  readonly files: Map<FileName, Stamp>;
  whole: Stamp;
  /** Its stamp when it is empty, has its inputs, or was freed of those; undefined if it was changed. */
  root: Stamp | undefined;
  /** Inputs that stay in the root while it is unused. */
  left?: LeftInputs | undefined;
  /** Nothing else is in the root, as long as its stamp matches. */
  isClear?: boolean;
};

/**
 * Recreates what was changed. Other attempts of the same user may be running and know the path: false if one of them
 * was in it meanwhile.
 */
export async function clear(folder: AttemptFolder, known: Known): Promise<boolean> {
  const { uid, files } = known;
  if (!isAsStamped(folder.path, known.whole)) return false;
  const isRootSame = known.root !== undefined && isAsStamped(folder.root, known.root);
  if (!(isRootSame && known.isClear) && !(await clearRoot(folder, known, isRootSame))) return false;
  for (const [name, stamp] of files) {
    if (isAsStamped(folder[name], stamp)) continue;
    unlinkSync(folder[name]);
    makeFile(folder[name], uid);
    files.set(name, stampOf(folder[name]));
  }
  known.whole = stampOf(folder.path);
  return true;
}

async function clearRoot(folder: AttemptFolder, known: Known, isSame: boolean): Promise<boolean> {
  if (!isSame) known.left = undefined;
  const staying = new Set([...(known.left?.folders.keys() ?? [])].map(bytesOf));
  await emptyFolder(folder.root, staying);
  if (!isSame) {
    rmdirSync(folder.root);
    makeRoot(folder, known.uid);
  }
  known.root = stampOf(folder.root);
  // Changes from here on show when the folder is taken; earlier ones must show now. (Extended attributes that another
  // attempt of the same user set meanwhile do not, if users can reach it; they give no one access.)
  const { mode } = lstatSync(folder.root);
  const names = readdirSync(folder.root, "latin1");
  const isOnly = names.length === staying.size && names.every((name) => staying.has(name));
  return isOnly && (mode & 0o7777) === rootMode;
}

const statusBytesMax = 4_096;

/**
 * Only the sandbox itself can write to it. It is overwritten with blanks, not truncated: some file systems (ext4) would
 * flush it to disk the next time.
 */
export function blank(path: string): void {
  const fd = openSync(path, "r+");
  try {
    const { size } = fstatSync(fd);
    if (size > statusBytesMax) ftruncateSync(fd, 0);
    else if (size > 0) writeSync(fd, Buffer.alloc(size, " "), 0, size, 0);
  } finally {
    closeSync(fd);
  }
}

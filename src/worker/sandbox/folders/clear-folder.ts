/** Makes an attempt's folder as good as new after what ran there, but for inputs that stay. */
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

/** What is known of a folder that may be used again. */
export type Known = {
  readonly uid: number;
  readonly files: Map<FileName, Stamp>;
  whole: Stamp;
  /** When it is empty, with its inputs, or without those that were taken; undefined when it was changed. */
  root: Stamp | undefined;
  /** Inputs that lie in the root while nobody has it. */
  left?: LeftInputs | undefined;
  /** There is nothing else in the root, as long as it is as stamped. */
  isClear?: boolean;
};

/**
 * What is not as it was is made anew. Others of its user may be at work, and know where it is: false where somebody was
 * in it meanwhile.
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
  // What is done to it from here on shows when it is taken; what was done to it before has to show now. (Attributes
  // that another of its user gave it meanwhile do not, where users can reach it: they open nothing to anybody.)
  const { mode } = lstatSync(folder.root);
  const names = readdirSync(folder.root, "latin1");
  const isOnly = names.length === staying.size && names.every((name) => staying.has(name));
  return isOnly && (mode & 0o7777) === rootMode;
}

const statusBytesMax = 4_096;

/**
 * Only the sandbox itself can write to it. It is written over with nothing, not emptied: some file systems (ext4) would
 * put it on the disk the next time.
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

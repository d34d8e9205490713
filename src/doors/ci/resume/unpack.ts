/** Puts a job's files back as the last of several deltas left them: only what is still there at the end is written. */
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import { manifestName, type ManifestLine, packLimits, partName } from "./pack.ts";
import { openSealed, openText } from "./sealed-file.ts";
import { onDisk, type TreePath } from "./walk.ts";

type Present = { readonly line: Exclude<ManifestLine, { kind: "removed" }>; readonly folder: string };

const pieceBytes = 1 << 20;
const writable = 0o700;

export type UnpackFrom = {
  /** Those that `packDelta` wrote, the oldest first. */
  readonly folders: readonly string[];
  readonly key: Uint8Array;
  readonly partBytes?: number;
};

/** `root` has none of the entries yet, at most the folders `tops`. */
export function unpackDeltas(root: string, tops: readonly string[], from: UnpackFrom): void {
  const present = finalEntries(from, tops);
  for (const { line, folder } of present.values()) {
    const path = onDisk(root, line.path);
    if (line.kind === "folder") makeFolder(path);
    else if (line.kind === "link") symlinkSync(Buffer.from(line.target, "latin1"), path);
    else restoreFile(path, line, folder, from);
  }
  // last and from the inside out: a folder may be read-only, and every entry that is made in it changes its time
  for (const { line } of [...present.values()].toReversed())
    if (line.kind === "folder") {
      utimesSync(onDisk(root, line.path), line.mtimeMs / 1_000, line.mtimeMs / 1_000);
      chmodSync(onDisk(root, line.path), line.mode);
    }
}

function finalEntries({ folders, key }: UnpackFrom, tops: readonly string[]): ReadonlyMap<TreePath, Present> {
  const present = new Map<TreePath, Present>();
  for (const folder of folders)
    for (const text of openText(join(folder, manifestName), key).split("\n")) {
      if (text === "") continue;
      const line = JSON.parse(text) as ManifestLine;
      checkPath(line.path, tops);
      present.delete(line.path); // so that what comes last in the table was made last
      if (line.kind !== "removed") present.set(line.path, { line, folder });
    }
  return new Map([...present].toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

/** It is the job's own earlier state, yet a damaged one must not write outside the job's folders. */
function checkPath(path: TreePath, tops: readonly string[]): void {
  const parts = path.split("/");
  if (!tops.includes(parts[0] ?? "") || parts.some((part) => part === "" || part === "." || part === ".."))
    throw new Fault("corrupt", "restore the job's files", { path: path.slice(0, 200) });
}

function makeFolder(path: Buffer): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) mkdirSync(path, { mode: writable });
  chmodSync(path, writable);
}

function restoreFile(
  path: Buffer,
  { at, size, mode, mtimeMs }: Extract<ManifestLine, { kind: "file" }>,
  folder: string,
  { key, partBytes = packLimits.partBytes }: UnpackFrom,
): void {
  const file = openSync(path, "wx", writable);
  try {
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, Math.max(1, size)));
    for (let done = 0; done < size;) {
      const from = at + done;
      const part = openSync(opened(join(folder, partName(Math.floor(from / partBytes))), key), "r");
      try {
        const left = Math.min(size - done, partBytes - (from % partBytes));
        done += copy(part, from % partBytes, left, file, piece);
      } finally {
        closeSync(part);
      }
    }
  } finally {
    closeSync(file);
  }
  utimesSync(path, mtimeMs / 1_000, mtimeMs / 1_000);
  chmodSync(path, mode);
}

/** Each part once. */
function opened(part: string, key: Uint8Array): string {
  const plain = `${part}.open`;
  if (!existsSync(plain)) openSealed(part, plain, key);
  return plain;
}

function copy(from: number, at: number, bytes: number, to: number, piece: Buffer): number {
  for (let done = 0; done < bytes;) {
    const read = readSync(from, piece, 0, Math.min(piece.length, bytes - done), at + done);
    if (read === 0)
      throw new Fault("corrupt", "restore the job's files", { why: "a part is shorter than its manifest says" });
    for (let written = 0; written < read;) written += writeSync(to, piece, written, read - written);
    done += read;
  }
  return bytes;
}

/**
 * The folder of one attempt: with an unguessable name, and accessible to its own user only. Staged inputs and outputs
 * are in `root`; printed output goes to files beside it, which the command can write but not replace.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, closeSync, fchownSync, mkdirSync, openSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { folderNames } from "#worker/process/protocol.ts";
import { removeFolder } from "./remove-folder.ts";

export type AttemptFolder = {
  readonly path: string;
  readonly root: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly status: string;
};

export const attemptsIn = (home: string): string => join(home, "attempts");

export function attemptFolderAt(path: string): AttemptFolder {
  return {
    path,
    root: join(path, folderNames.root),
    stdout: join(path, folderNames.stdout),
    stderr: join(path, folderNames.stderr),
    status: join(path, folderNames.status),
  };
}

export function makeAttemptFolder(home: string, uid: number | undefined): AttemptFolder {
  const folder = attemptFolderAt(join(attemptsIn(home), randomBytes(16).toString("hex")));
  mkdirSync(folder.path, { mode: 0o700 });
  for (const path of [folder.stdout, folder.stderr, folder.status]) makeFile(path, uid);
  makeRoot(folder, uid);
  if (uid !== undefined) {
    // The attempt's user may traverse it, but change nothing in it.
    chownSync(folder.path, process.getuid?.() ?? 0, uid);
    chmodSync(folder.path, 0o710);
  }
  return folder;
}

/** Writable for the attempt's user. */
export function makeFile(path: string, uid: number | undefined): void {
  const fd = openSync(path, "wx", 0o600);
  try {
    if (uid !== undefined) fchownSync(fd, uid, uid);
  } finally {
    closeSync(fd);
  }
}

export const rootMode = 0o700;

export function makeRoot({ root }: AttemptFolder, uid: number | undefined): void {
  mkdirSync(root, { mode: rootMode });
  if (uid !== undefined) chownSync(root, uid, uid);
}

/** Deletes folders that have no owner any more. */
export async function reclaimAttempts(
  home: string,
  kept: ReadonlySet<string>,
  before: (path: string) => Promise<void> = async () => {},
): Promise<number> {
  const root = attemptsIn(home);
  mkdirSync(root, { recursive: true, mode: 0o711 });
  const left = (await readdir(root)).map((name) => join(root, name)).filter((path) => !kept.has(path));
  for (const path of left) {
    await before(path);
    await removeFolder(path);
  }
  return left.length;
}

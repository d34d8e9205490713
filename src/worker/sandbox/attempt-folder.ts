/**
 * The folder of one attempt: a name that nobody can guess, and a way in for its own user only. What is staged and made is
 * in `root`; output goes to files beside it, which what runs can write but not replace.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, closeSync, fchownSync, mkdirSync, openSync } from "node:fs";
import { chmod, lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

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
    root: join(path, "root"),
    stdout: join(path, "stdout"),
    stderr: join(path, "stderr"),
    status: join(path, "status"),
  };
}

export function makeAttemptFolder(home: string, uid: number | undefined): AttemptFolder {
  const folder = attemptFolderAt(join(attemptsIn(home), randomBytes(16).toString("hex")));
  mkdirSync(folder.path, { mode: 0o700 });
  for (const path of [folder.stdout, folder.stderr, folder.status]) {
    const fd = openSync(path, "wx", 0o600);
    if (uid !== undefined) fchownSync(fd, uid, uid);
    closeSync(fd);
  }
  mkdirSync(folder.root, { mode: 0o700 });
  if (uid !== undefined) {
    chownSync(folder.root, uid, uid);
    // Passed through by the attempt's user, who can change nothing in it.
    chownSync(folder.path, process.getuid?.() ?? 0, uid);
    chmodSync(folder.path, 0o710);
  }
  return folder;
}

/** Whatever was left in there, and however its rights were set. */
export async function removeFolder(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 2 });
  } catch (error) {
    if (!["EACCES", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    await open(Buffer.from(path));
    await rm(path, { recursive: true, force: true, maxRetries: 2 });
  }
}

/** Of those that no longer have an owner. */
export async function reclaimAttempts(home: string, kept: ReadonlySet<string>): Promise<number> {
  const root = attemptsIn(home);
  mkdirSync(root, { recursive: true, mode: 0o711 });
  const left = (await readdir(root)).map((name) => join(root, name)).filter((path) => !kept.has(path));
  for (const path of left) await removeFolder(path);
  return left.length;
}

/** Makes folders passable again; symbolic links are not followed, and names may be any bytes. */
async function open(path: Buffer): Promise<void> {
  if (!(await lstat(path)).isDirectory()) return;
  await chmod(path, 0o700);
  for (const entry of await readdir(path, { withFileTypes: true, encoding: "buffer" }))
    if (entry.isDirectory()) await open(Buffer.concat([path, Buffer.from("/"), entry.name]));
}

/**
 * The files behind an SQLite connection, as the file system sees them. SQLite goes on writing to files that were
 * removed or replaced, and all of that is lost with the process: so the files are checked before anything is
 * acknowledged.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { Fault } from "#base/fault.ts";

/** Identifies a file as long as a process has it open: until then its inode is not reused. */
export type FileIdentity = string;

export const identityOf = (path: string): FileIdentity | undefined => {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
};

/** The files that a connection has open, noted right after it was opened. */
export class OpenFiles {
  readonly #known: ReadonlyMap<string, FileIdentity>;

  constructor(path: string) {
    const files = [path, `${path}-wal`].map((file) => [file, identityOf(file)] as const);
    this.#known = new Map(files.flatMap(([file, identity]) => (identity === undefined ? [] : [[file, identity]])));
  }

  /** The first file that is no longer at its path, if any. */
  missing(): string | undefined {
    for (const [path, identity] of this.#known) if (identityOf(path) !== identity) return path;
    return undefined;
  }
}

/** The value counts only if the files are there before and after. */
export function whileThere<T>(
  files: Pick<OpenFiles, "missing">,
  { doing, isRead }: { readonly doing: string; readonly isRead: boolean },
  run: () => T,
): T {
  const gone = files.missing();
  if (gone !== undefined) throw fileGone("unavailable", doing, gone);
  const value = run();
  const goneSince = files.missing();
  // If the file is put back, what was written may still count: the outcome is unknown.
  if (goneSince !== undefined) throw fileGone(isRead ? "unavailable" : "unknown-outcome", doing, goneSince);
  return value;
}

export const fileGone = (code: "unavailable" | "unknown-outcome", doing: string, path: string): Fault =>
  new Fault(code, doing, {
    why: "the file was removed or replaced while it was in use: stop the node, put the file back, start it again",
    path,
  });

/**
 * Creates the folder and syncs the names that lead to it: after a power failure an unsynced name may be gone, and
 * everything below it.
 */
export function makeFolder(path: string): void {
  const folder = resolve(path);
  const made = mkdirSync(folder, { recursive: true, mode: 0o700 });
  const top = dirname(made === undefined ? folder : resolve(made));
  for (let at = dirname(folder); ; at = dirname(at)) {
    syncFolder(at);
    if (at === top || at === dirname(at)) return;
  }
}

function syncFolder(folder: string): void {
  try {
    const opened = openSync(folder, "r");
    try {
      fsyncSync(opened);
    } finally {
      closeSync(opened);
    }
  } catch (error) {
    // A folder that we may not read, or a system that cannot sync folders: nothing can be done about it.
    if (!["EACCES", "EPERM", "EISDIR", "EINVAL"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

/** Where actions of builds run. */
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Fault } from "#base/fault.ts";
import { isPassable } from "#worker/sandbox/folders/folders.ts";

/** Names the data folder that a home outside of it belongs to. */
export const ofFile = "of";
export const elsewhereDefault = "/var/tmp";
/** Other users may traverse it, but neither list nor change it. */
const homeMode = 0o711;

/**
 * In the data folder, unless actions run as other users, who cannot traverse that: then below a folder that every user
 * can traverse. Its name is derived from the data folder's, so that the next process of this node finds it.
 */
export function actionsHome(given: string | undefined, data: string, elsewhere: string = elsewhereDefault): string {
  if (given !== undefined) return opened(given);
  if (process.getuid?.() !== 0 || isPassable(data)) return opened(join(data, "actions"));
  sweep(elsewhere);
  const name = createHash("sha256").update(data).digest("hex").slice(0, 16);
  const home = opened(join(elsewhere, `millrace-${name}`));
  writeFileSync(join(home, ofFile), data, { mode: 0o600 });
  return home;
}

/** A node with a temporary data folder leaves nothing elsewhere either. */
export function leaveHome(home: string, given: string | undefined, data: string): void {
  const isElsewhere = given === undefined && !home.startsWith(`${data}/`);
  if (isElsewhere && data.startsWith(`${tmpdir()}/`)) discard(home);
}

/** Removes homes of killed nodes whose data folder is gone. */
function sweep(elsewhere: string): void {
  for (const of of globSync(`millrace-*/${ofFile}`, { cwd: elsewhere }).map((path) => join(elsewhere, path))) {
    const home = dirname(of);
    unlessOthersDo(() => {
      if (isOurs(home) && !existsSync(readFileSync(of, "utf8"))) discard(home);
    });
  }
}

/** Its marker is deleted last: whatever stays is swept by the next node. */
function discard(home: string): void {
  const gone = { recursive: true, force: true, maxRetries: 3 };
  unlessOthersDo(() => {
    for (const name of readdirSync(home)) if (name !== ofFile) rmSync(join(home, name), gone);
    rmSync(home, gone);
  });
}

/** A launcher that outlives its node may still write there, and another node may sweep at the same time. */
function unlessOthersDo(clear: () => void): void {
  try {
    clear();
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["ENOTEMPTY", "ENOENT"].includes(code)) throw error;
  }
}

function opened(home: string): string {
  mkdirSync(home, { recursive: true, mode: homeMode });
  closeToGroup(home);
  // A folder of that name that another user owns could be changed by that user.
  if (!isOurs(home)) throw new Fault("invalid", "open folder for actions", { home, why: "others may write to it" });
  return home;
}

/**
 * A volume mounted for a group is writable for that group, with all its content: our own folder gets its mode back.
 * Members of the group were trusted with the whole volume. A folder that every user could write to may contain
 * anything, and stays refused.
 */
function closeToGroup(home: string): void {
  const { mode } = lstatSync(home);
  if ((mode & 0o020) !== 0 && isOurs(home, 0o002)) chmodSync(home, mode & homeMode);
}

export function isOurs(home: string, closed = 0o022): boolean {
  const stats = lstatSync(home);
  return stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & closed) === 0;
}

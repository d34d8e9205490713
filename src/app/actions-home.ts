/** Where actions of builds run. */
import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Fault } from "#base/fault.ts";

/** Says whose it is, in a home that is not in its node's data folder. */
const ofFile = "of";
const elsewhereDefault = "/var/tmp";

/**
 * In the data folder, unless actions run as other users, who cannot pass through it: then below a folder that everybody
 * can pass through. Its name is made of the data folder's, so that the next life of this node finds it.
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

/** A node whose data is temporary leaves nothing elsewhere either. */
export function leaveHome(home: string, given: string | undefined, data: string): void {
  const isElsewhere = given === undefined && !home.startsWith(`${data}/`);
  if (isElsewhere && data.startsWith(`${tmpdir()}/`)) discard(home);
}

/** Those whose nodes were killed, and whose data is gone since. */
function sweep(elsewhere: string): void {
  for (const of of globSync(`millrace-*/${ofFile}`, { cwd: elsewhere }).map((path) => join(elsewhere, path))) {
    const home = dirname(of);
    if (isOurs(home) && !existsSync(readFileSync(of, "utf8"))) discard(home);
  }
}

/** A launcher that outlives its node may still write there: what stays, with its sign, is swept by the next node. */
function discard(home: string): void {
  const gone = { recursive: true, force: true, maxRetries: 3 };
  try {
    for (const name of readdirSync(home)) if (name !== ofFile) rmSync(join(home, name), gone);
    rmSync(home, gone);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
  }
}

function opened(home: string): string {
  mkdirSync(home, { recursive: true, mode: 0o711 });
  // Somebody else's folder of that name would be theirs to change.
  if (!isOurs(home)) throw new Fault("invalid", "open folder for actions", { home, why: "others may write to it" });
  return home;
}

function isOurs(home: string): boolean {
  const stats = lstatSync(home);
  return stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & 0o022) === 0;
}

function isPassable(path: string): boolean {
  for (let at = realpathSync(path); ; at = dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

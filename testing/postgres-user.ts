// PostgreSQL refuses to run as root. If we are root (containers, CI) it runs as `nobody`, and everything that it uses
// must be readable by that user.
import { spawnSync } from "node:child_process";
import { chmodSync, lchownSync, mkdtempSync, readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export type User = { readonly uid: number; readonly gid: number };

/** The user to run the server as, or undefined if this process's own user is suitable. */
export function serverUser(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = ["-u", "-g"].map((flag) => Number(spawnSync("id", [flag, "nobody"]).stdout?.toString() || NaN));
  if (uid === undefined || gid === undefined || Number.isNaN(uid) || Number.isNaN(gid)) {
    throw new Error("this process is root, PostgreSQL refuses to run as root, and there is no user `nobody`");
  }
  return { uid, gid };
}

/** A new temporary folder that `user` owns and can reach. */
export function temporaryFolder(prefix: string, user: User | undefined): string {
  const roots = [tmpdir(), "/tmp", "/var/tmp"];
  const root = user === undefined ? roots[0] : roots.find((each) => othersCanEnter(each));
  if (root === undefined) throw new Error(`no temporary folder that user ${user?.uid} can enter: ${roots.join(", ")}`);
  const folder = mkdtempSync(join(root, prefix));
  if (user) lchownSync(folder, user.uid, user.gid);
  chmodSync(folder, 0o700);
  return folder;
}

export function othersCanEnter(folder: string): boolean {
  try {
    const searchable = (statSync(folder).mode & 0o001) !== 0;
    return searchable && (folder === dirname(folder) || othersCanEnter(dirname(folder)));
  } catch {
    return false;
  }
}

/** Why a test that runs this checkout's programs as another user cannot, for root in a checkout of its own. */
export function otherUserCannotRun(): string | false {
  const lacks = process.getuid?.() === 0 && !othersCanEnter(import.meta.dirname);
  return lacks && "needs passable-checkout: other users cannot read it";
}

export function giveTo({ uid, gid }: User, folder: string): void {
  lchownSync(folder, uid, gid);
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }))
    lchownSync(join(folder, name), uid, gid);
}

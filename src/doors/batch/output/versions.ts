/**
 * A folder whose content changes all at once. Each version is a folder of its own beside it, and the folder itself is a
 * link to the one that counts, replaced by a rename.
 *
 * BO1 A reader finds a whole version behind the name, or none: a crash at any point leaves the one that was there.
 * BO2 The same version may be committed any number of times: from the second on, nothing changes.
 */
import { randomUUID } from "node:crypto";
import { lstat, mkdir, open, readdir, readlink, rename, rm, rmdir, stat, symlink, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Fault } from "#base/fault.ts";

export const manifestName = "_SUCCESS";

/** Where the versions of a folder are. */
export const versionsOf = (folder: string): string => join(dirname(folder), `.${basename(folder)}.versions`);

const stagingPrefix = ".staging-";

export async function openStaging(
  folder: string,
  attempt: string,
): Promise<AsyncDisposable & { readonly path: string }> {
  await refuseForeign(folder);
  const path = join(versionsOf(folder), `${stagingPrefix}${attempt}`);
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true });
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Makes what was staged the version that counts. `mayCommit` is asked last, right before it does. */
export async function commitVersion(
  folder: string,
  staging: string,
  version: string,
  mayCommit: () => Promise<void>,
): Promise<void> {
  const versions = versionsOf(folder);
  const target = join(versions, version);
  if (!(await touched(target))) {
    await syncFolder(staging);
    // A folder's own time is that of the last file made in it, by a clock some milliseconds behind ours.
    await touched(staging);
    await rename(staging, target).catch((error: NodeJS.ErrnoException) => {
      // Another attempt was quicker; what it wrote has the same name because it is the same.
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
    await syncFolder(versions);
  }
  await mayCommit();
  const before = await linkOf(folder);
  if (before === undefined) await rmdir(folder).catch(() => {}); // an empty folder makes way
  const now = join(basename(versions), version);
  if (before !== now) {
    const link = join(versions, `.link-${randomUUID()}`);
    await symlink(now, link);
    await rename(link, folder);
    await syncFolder(dirname(folder));
  }
  if (before !== undefined && before !== now) await forgetOlder(versions, { before: basename(before), now: version });
}

/**
 * A reader may still be in the version before, so only what is older than that goes. What is younger may be another
 * attempt's, just before its link.
 */
async function forgetOlder(
  versions: string,
  { before, now }: { readonly before: string; readonly now: string },
): Promise<void> {
  const kept = await stat(join(versions, before)).catch(() => undefined);
  if (!kept) return;
  for (const name of await readdir(versions)) {
    if (name === now || name.startsWith(".")) continue; // the one that counts; being staged or linked
    const about = await stat(join(versions, name)).catch(() => undefined);
    if (about && about.mtimeMs < kept.mtimeMs) await rm(join(versions, name), { recursive: true, force: true });
  }
}

/** Whether it is there; it counts as made now. */
const touched = (path: string): Promise<boolean> =>
  utimes(path, new Date(), new Date()).then(
    () => true,
    () => false,
  );

async function refuseForeign(folder: string): Promise<void> {
  const about = await lstat(folder).catch(() => undefined);
  if (!about) return;
  const why = "something else is there; name a folder that is new, empty or was written by a query";
  if (about.isSymbolicLink()) {
    if ((await linkOf(folder)) === undefined) throw new Fault("invalid", "write result", { folder, why });
  } else if (!about.isDirectory() || (await readdir(folder)).length > 0)
    throw new Fault("invalid", "write result", { folder, why });
}

/** Undefined unless it is a link to one of its versions. */
async function linkOf(folder: string): Promise<string | undefined> {
  const link = await readlink(folder).catch(() => undefined);
  return link !== undefined && dirname(link) === basename(versionsOf(folder)) ? link : undefined;
}

export async function syncFolder(path: string): Promise<void> {
  await using handle = await open(path, "r");
  await handle.sync();
}

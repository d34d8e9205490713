/** Takes a finished file into the store by its name: hashed once, and never copied. */
import { randomUUID } from "node:crypto";
import { chmod, chown, lstat, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { DigestParts } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { Core } from "#blobs/disk/core.ts";
import { grant, isGood, type TenantView } from "#blobs/disk/disk-blobs.ts";
import { asDiskFault, storeIsClosed } from "#blobs/disk/disk-fault.ts";
import { noEntry } from "#blobs/disk/table/table.ts";
import { publishFile } from "./publish.ts";

/** False, and the file is where it was, if only a copy of it could be stored. */
export async function adoptFile(core: Core, view: TenantView, parts: DigestParts, path: string): Promise<boolean> {
  const { packedBytesMax, compression } = core.options;
  if (parts.sizeBytes <= packedBytesMax || compression !== "none") return false;
  if (core.log.isClosed || core.log.lost) throw core.log.lost ?? storeIsClosed("adopt file");
  const seen = core.findFor(parts, view.number());
  if (seen !== noEntry && (await isGood(core, seen, parts))) {
    await rm(path, { force: true });
    return true;
  }
  const own = await movedHere(core, path);
  if (own === undefined) return false;
  try {
    await core.borrowSpace(parts.sizeBytes, async () => {
      await checkFile(core, parts, own);
      await keepChecked(core, view, parts, own);
    });
    return true;
  } catch (error) {
    // It may be written in another way; or its folder has gone meanwhile.
    await rename(own, path).catch(() => rm(own, { force: true }));
    throw asDiskFault(error, "adopt file", { hash: parts.hash });
  }
}

/** A tenant sees a copy of another tenant only after it has shown the bytes (B5). */
async function keepChecked(core: Core, view: TenantView, parts: DigestParts, own: string): Promise<void> {
  const given = view.assigned();
  const tenant = typeof given === "number" ? given : await given;
  const entry = core.find(parts);
  if (entry === noEntry || !(await isGood(core, entry, parts)))
    return await publishFile(core, parts, { path: own, tenant, diskBytes: parts.sizeBytes, isFramed: false });
  await grant(core, entry, tenant);
  await rm(own, { force: true });
}

/**
 * Before it is hashed: in the store's own folder no other program finds it. A file that has other names might be
 * changed through them. Undefined if it cannot be had by its name.
 */
async function movedHere(core: Core, path: string): Promise<string | undefined> {
  const stats = await lstat(path);
  if (!stats.isFile() || stats.nlink !== 1) return undefined;
  const [uid, gid] = [process.getuid?.(), process.getgid?.()];
  const own = join(core.root, "uploads", `adopted-${randomUUID()}`);
  try {
    if (uid !== undefined && gid !== undefined && stats.uid !== uid) await chown(path, uid, gid);
    await chmod(path, 0o600);
    await rename(path, own);
    return own;
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (["EXDEV", "EPERM", "EACCES"].includes(code)) return undefined;
    throw asDiskFault(error, "adopt file");
  }
}

async function checkFile(core: Core, parts: DigestParts, path: string): Promise<void> {
  const { hash, sizeBytes } = parts;
  const { size } = await lstat(path);
  const hashing = core.hashing.begin(parts, path);
  try {
    const got = size === sizeBytes ? await hashing.finish(sizeBytes) : undefined;
    if (got === hash) return;
    const why = got === undefined ? "the size differs from the digest's" : "the bytes have another digest";
    throw new Fault("invalid", "adopt file", { hash, sizeBytes, got: size, why });
  } finally {
    hashing.close();
  }
}

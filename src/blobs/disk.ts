import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { canonical, checkedOffset, verified } from "./sha256.ts";
import type { BlobStore } from "./store.ts";

/**
 * Bytes in files, two levels of folders by digest. A blob is written beside its place, verified, made durable and
 * then renamed, so that a name always means the whole blob (B1, B3), after a crash too. Nothing is evicted yet:
 * what is there stays, which keeps every pin (B2).
 */
export async function openDiskBlobs(root: string): Promise<BlobStore> {
  const temporary = join(root, "tmp");
  await mkdir(temporary, { recursive: true });
  await removeOld(temporary);

  const pathOf = (digest: Digest): string => {
    const name = canonical(digest).replace("/", "-");
    return join(root, name.slice(0, 2), name.slice(2, 4), name);
  };
  const isThere = (digest: Digest): Promise<boolean> =>
    stat(pathOf(digest)).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return false;
        throw new Fault("unavailable", "look for blob", { digest, errno: error.code }, error);
      },
    );
  const missing = async (digests: readonly Digest[]): Promise<readonly Digest[]> => {
    const there = await Promise.all(digests.map((digest) => isThere(digest)));
    return digests.filter((_, index) => !there[index]);
  };

  return {
    missing: async (digests) => missing(digests.map((digest) => (canonical(digest), digest))),
    async *read(digest, range) {
      const path = pathOf(digest);
      const offset = checkedOffset(digest, range?.offset ?? 0);
      if (!(await isThere(digest))) throw new Fault("not-found", "read blob", { digest });
      if (range?.length === 0) return;
      const end = range?.length === undefined ? undefined : offset + range.length - 1;
      yield* createReadStream(path, { start: offset, ...(end === undefined ? {} : { end }) });
    },
    async write(digest, source) {
      const name = canonical(digest);
      const path = pathOf(name);
      if (await isThere(name)) return drain(verified(name, source));
      const partial = join(temporary, randomUUID());
      try {
        await writeDurably(partial, verified(name, source));
        await mkdir(dirname(path), { recursive: true });
        await rename(partial, path);
        await syncFolders(root, dirname(path));
      } catch (error) {
        await rm(partial, { force: true });
        throw asFault(error, digest);
      }
    },
    async pin(digests, forMs) {
      const gone = await missing(digests);
      return gone.length > 0 ? { missing: gone } : { digests, pinnedForMs: forMs };
    },
  };
}

const oldMs = 3_600_000;

/** What a crash left half-written has no name and is nobody's; what is younger, another node may be writing. */
async function removeOld(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const ageMs = await stat(path).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    );
    if (ageMs > oldMs) await rm(path, { force: true });
  }
}

async function writeDurably(path: string, parts: AsyncIterable<Uint8Array>): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  for await (const part of parts) await file.writeFile(part);
  await file.datasync();
}

/** A new name is durable when the folder that holds it is; a new folder likewise, up to the root. */
async function syncFolders(root: string, from: string): Promise<void> {
  for (let folder = from; folder.length >= root.length; folder = dirname(folder)) {
    await using handle = await open(folder, "r");
    await handle.sync().catch((error: NodeJS.ErrnoException) => {
      // Some systems (Windows) have no durable folders to ask for.
      if (error.code !== "EPERM" && error.code !== "EINVAL" && error.code !== "EISDIR") throw error;
    });
  }
}

function asFault(error: unknown, digest: Digest): Fault {
  if (error instanceof Fault) return error;
  const errno = (error as NodeJS.ErrnoException).code;
  const full = errno === "ENOSPC" || errno === "EDQUOT";
  return new Fault(full ? "exhausted" : "unavailable", "write blob", { digest, errno }, error);
}

async function drain(parts: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of parts);
}

/**
 * Puts a release's files on this machine's disk, beside what runs. Nothing is activated here.
 *
 * ST1 A version's folder has its final name only when every byte in it is verified and flushed.
 * ST2 Staging goes on where it stopped, after kill -9 too: what lies there already is verified, not trusted.
 * ST3 Free space is checked before the first byte; a machine that is full keeps what it runs.
 */
import { createHash } from "node:crypto";
import { chmod, mkdir, open, readdir, rename, rm, stat, statfs, symlink, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseDigest, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { manifestSizeBytes, segmentBytes, type Manifest, type ManifestFile } from "#doors/deploy/manifest/manifest.ts";
import { ignoreMissing } from "#base/ignore-missing.ts";
import { flushFolder } from "./durable-files.ts";

/** Where whole segments come from: a node. */
export type SegmentSource = (digest: Digest) => AsyncIterable<Uint8Array>;
/**
 * Puts into the staging folder what older releases and other machines have, and answers with the segments that it has
 * verified. Whatever it leaves out is fetched from the source.
 */
export type Fill = (folder: string) => Promise<ReadonlySet<Digest> | void>;
export type StageMore = {
  readonly fill?: Fill | undefined;
  /** What else is to be written before this is of use. */
  readonly alsoBytes?: number;
  /** What lies in the staging folder then stays, to go on with later. */
  readonly signal?: AbortSignal | undefined;
};
type Wanted = {
  readonly source: SegmentSource;
  readonly verified: ReadonlySet<Digest>;
  readonly signal: AbortSignal | undefined;
};
type Content = Pick<Manifest, "files" | "links">;

const freeBytesMin = 64 * 1024 * 1024;
const doing = "stage release";

/** `folder` is the service's `versions` folder. Answers with the folder of the version, complete. */
export async function stage(
  folder: string,
  digest: Digest,
  manifest: Content,
  source: SegmentSource,
  { fill, alsoBytes = 0, signal }: StageMore = {},
): Promise<string> {
  const done = versionFolder(folder, digest);
  if (await exists(done)) return done;
  const work = `${done}.staging`;
  await reserve(folder, work, manifestSizeBytes(manifest) + alsoBytes);
  await mkdir(work, { recursive: true });
  const verified = (await fill?.(work)) ?? new Set<Digest>();
  const folders = new Set([work]);
  for (const file of manifest.files) {
    await makeParents(work, file.path, folders);
    await stageFile(join(work, file.path), file, { source, verified, signal });
  }
  for (const { path, target } of manifest.links) {
    await makeParents(work, path, folders);
    await rm(join(work, path), { force: true });
    await symlink(target, join(work, path));
  }
  for (const each of folders) await flushFolder(each);
  await rename(work, done);
  await flushFolder(folder);
  return done;
}

export function versionFolder(folder: string, digest: Digest): string {
  const parts = parseDigest(digest);
  if (!parts) throw new Fault("invalid", doing, { digest });
  return join(folder, `${parts.fn}-${parts.hash}`);
}

/** The manifests whose folders are complete. */
export async function stagedHashes(folder: string): Promise<ReadonlySet<string>> {
  const names = (await readdir(folder).catch(ignoreMissing)) ?? [];
  return new Set(names.filter((name) => /^[a-z0-9]+-[0-9a-f]+$/.test(name)));
}

async function stageFile(
  path: string,
  { executable, sizeBytes, segments }: ManifestFile,
  { source, verified, signal }: Wanted,
): Promise<void> {
  const file = await open(path, "a+").then(async (made) => {
    await made.close();
    return await open(path, "r+");
  });
  try {
    for (const [index, digest] of segments.entries()) {
      const offset = index * segmentBytes;
      if (verified.has(digest) || (await holds(file, offset, digest))) continue;
      await fetchSegment(file, offset, digest, { source, signal });
    }
    await file.truncate(sizeBytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await chmod(path, executable ? 0o755 : 0o644);
}

async function fetchSegment(
  file: FileHandle,
  offset: number,
  digest: Digest,
  { source, signal }: Omit<Wanted, "verified">,
): Promise<void> {
  signal?.throwIfAborted();
  const { hash, sizeBytes } = partsOf(digest);
  const hashing = createHash("sha256");
  let at = 0;
  for await (const part of source(digest)) {
    signal?.throwIfAborted();
    if (at + part.length > sizeBytes) throw new Fault("corrupt", doing, { digest, why: "longer than it should be" });
    hashing.update(part);
    await file.write(part, 0, part.length, offset + at);
    at += part.length;
  }
  // A connection that broke is no proof against the version: it is tried again.
  if (at < sizeBytes)
    throw new Fault("unavailable", doing, { digest, receivedBytes: at, why: "the bytes ended early" });
  if (hashing.digest("hex") !== hash)
    throw new Fault("corrupt", doing, { digest, receivedBytes: at, why: "its bytes do not have this digest" });
}

/** Whether the bytes that lie there already are the segment's (ST2). */
async function holds(file: FileHandle, offset: number, digest: Digest): Promise<boolean> {
  const { hash, sizeBytes } = partsOf(digest);
  const { size } = await file.stat();
  if (size < offset + sizeBytes) return false;
  const hashing = createHash("sha256");
  const buffer = Buffer.allocUnsafe(256 * 1024);
  for (let at = 0; at < sizeBytes;) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, sizeBytes - at), offset + at);
    if (bytesRead === 0) return false;
    hashing.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
  return hashing.digest("hex") === hash;
}

function partsOf(digest: Digest): { readonly hash: string; readonly sizeBytes: number } {
  const parts = parseDigest(digest);
  if (parts?.fn !== "sha256") throw new Fault("invalid", doing, { digest, why: "segments are named by SHA-256" });
  return parts;
}

async function makeParents(root: string, path: string, made: Set<string>): Promise<void> {
  const parent = dirname(join(root, path));
  if (made.has(parent)) return;
  await mkdir(parent, { recursive: true });
  for (let at = parent; !made.has(at); at = dirname(at)) made.add(at);
}

async function reserve(folder: string, work: string, bytes: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  const needs = bytes - (await sizeOf(work)) + freeBytesMin;
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < needs)
    throw new Fault("exhausted", doing, { freeBytes: bavail * bsize, neededBytes: needs, folder });
}

/** Of all files in it. */
export async function sizeOf(folder: string): Promise<number> {
  const entries = (await readdir(folder, { recursive: true, withFileTypes: true }).catch(ignoreMissing)) ?? [];
  let bytes = 0;
  for (const entry of entries) if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size;
  return bytes;
}

const exists = async (path: string): Promise<boolean> => (await stat(path).catch(ignoreMissing)) !== undefined;

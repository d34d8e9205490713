/** A folder becomes the files of a manifest, and its bytes blobs of the store. */
import { createHash } from "node:crypto";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { Fault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import { hashUnits } from "#doors/deploy/manifest/layout.ts";
import { segmentBytes, type Manifest, type ManifestFile } from "#doors/deploy/manifest/manifest.ts";

/** With the hashes by which machines verify what they get from each other. */
export async function packWithUnits(
  folder: string,
  blobs: BlobStore,
): Promise<Pick<Manifest, "files" | "links" | "units">> {
  const { files, links } = await pack(folder, blobs);
  // The order of the units is the order of the files in the manifest.
  const byPath = files.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return { files: byPath, links, units: await hashUnits({ files: byPath }, blobs) };
}

async function pack(folder: string, blobs: BlobStore): Promise<Pick<Manifest, "files" | "links">> {
  const files: ManifestFile[] = [];
  const links: Manifest["links"] = [];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    const at = join(entry.parentPath, entry.name);
    const path = relative(folder, at).split(sep).join("/");
    if (path === ".git" || path.startsWith(".git/")) continue;
    if (entry.isSymbolicLink()) links.push({ path, target: await readlink(at) });
    else if (entry.isFile()) files.push(await packFile(at, path, blobs));
    else if (!entry.isDirectory())
      throw new Fault("invalid", "pack release", { path, why: "neither a file, a folder nor a link" });
  }
  if (files.length === 0) throw new Fault("invalid", "pack release", { why: "the output folder has no file" });
  return { files, links };
}

async function packFile(at: string, path: string, blobs: BlobStore): Promise<ManifestFile> {
  const { mode, size } = await lstat(at);
  await using file = await open(at, "r");
  const segments: string[] = [];
  for (let offset = 0; offset < size; offset += segmentBytes) {
    const range = { start: offset, end: Math.min(size, offset + segmentBytes) - 1, autoClose: false } as const;
    const hashing = createHash("sha256");
    for await (const part of file.createReadStream(range)) hashing.update(part as Buffer);
    const digest = `${hashing.digest("hex")}/${range.end - range.start + 1}`;
    const [missing] = await blobs.missing([digest]);
    // Written by what was hashed: a file that changes meanwhile is refused by the store.
    if (missing !== undefined) await blobs.write(digest, file.createReadStream(range));
    segments.push(digest);
  }
  return { path, executable: (mode & 0o111) !== 0, sizeBytes: size, segments };
}

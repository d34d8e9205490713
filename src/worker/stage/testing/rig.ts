/**
 * Input trees for tests, as text: { "a/b.txt": "bytes", "run.sh*": executable, "to@": a link's target, "d/": empty }.
 */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { Digest } from "#base/digest.ts";
import { createMemoryBlobs, type MemoryBlobs } from "#blobs/memory/memory.ts";
import { sha256Digest } from "#blobs/sha256.ts";
import { encode } from "#wire/message.ts";
import { Directory } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { rigClock } from "#worker/process/testing/rig.ts";
import type { StageRequest } from "#worker/stage/stage.ts";

export type Words = Readonly<Record<string, string>>;

export const memoryBlobs = (): MemoryBlobs => createMemoryBlobs({ clock: rigClock, sizeBytesMax: 1_000_000_000 });

export async function put(blobs: MemoryBlobs, bytes: Uint8Array | string): Promise<Digest> {
  const all = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
  await blobs.write(sha256Digest(all), all);
  return sha256Digest(all);
}

export const wireDigest = (digest: Digest): { hash: string; sizeBytes: number } => {
  const [hash = "", size] = digest.split("/");
  return { hash, sizeBytes: Number(size) };
};

/** Writes all of it to the store and returns the root's digest. */
export async function putTree(blobs: MemoryBlobs, words: Words): Promise<Digest> {
  return await put(blobs, encode(Directory, await directoryOf(blobs, words)));
}

async function directoryOf(blobs: MemoryBlobs, words: Words): Promise<Directory> {
  const files = [];
  const symlinks = [];
  const below = new Map<string, Record<string, string>>();
  for (const [path, value] of Object.entries(words)) {
    const [first = "", ...rest] = path.split("/");
    if (rest.length > 0) {
      const inside = below.get(first) ?? {};
      if (rest.join("/") !== "") inside[rest.join("/")] = value;
      below.set(first, inside);
    } else if (path.endsWith("@")) symlinks.push({ name: path.slice(0, -1), target: value });
    else {
      const isExecutable = path.endsWith("*");
      const digest = wireDigest(await put(blobs, value));
      files.push({ name: isExecutable ? path.slice(0, -1) : path, digest, isExecutable });
    }
  }
  const directories = [];
  for (const [name, inside] of below) directories.push({ name, digest: wireDigest(await putTree(blobs, inside)) });
  return { files, directories, symlinks };
}

/** Everything below, with its visible attributes. */
export function listing(root: string, at = ""): readonly string[] {
  return readdirSync(join(root, at))
    .toSorted()
    .flatMap((name) => {
      const path = join(at, name);
      const stats = lstatSync(join(root, path));
      if (stats.isSymbolicLink()) return [`${path} -> ${readlinkSync(join(root, path))}`];
      const mode = (stats.mode & 0o777).toString(8);
      if (stats.isDirectory()) return [`${path}/ ${mode}`, ...listing(root, path)];
      return [`${path} ${mode} ${readFileSync(join(root, path), "utf8")}`];
    });
}

/** A request to lay out the tree, with the parents of these outputs. */
export async function requestOf(blobs: MemoryBlobs, words: Words, outputs: readonly string[]): Promise<StageRequest> {
  const symlinks = { absoluteLinks: "allowed" } as const;
  return { inputRoot: await putTree(blobs, words), digestFunction: "sha256", workingDirectory: "", outputs, symlinks };
}

/** Pure: the inputs of an action, as the tree of directories that the store keeps. */
import type { Digest } from "#base/digest.ts";
import type {
  Directory,
  DirectoryNode,
  FileNode,
  SymlinkNode,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { canonicalDirectory, encodeDirectory, type Encoded } from "#worker/outputs/canonical.ts";
import { wireOf } from "#doors/build/digests.ts";

export type Leaf =
  | { readonly kind: "file"; readonly digest: Digest; readonly isExecutable: boolean }
  | { readonly kind: "directory"; readonly digest: Digest }
  | { readonly kind: "link"; readonly target: string };

export type Placed<T> = { readonly path: string; readonly leaf: T };

export type Tree = {
  readonly root: Digest;
  /** The directories that must be in the store for it, besides the blobs of the leaves. */
  readonly directories: readonly Encoded[];
};

type Folder<T> = Map<string, Folder<T> | { readonly leaf: T }>;

const isFolder = <T>(entry: Folder<T> | { readonly leaf: T }): entry is Folder<T> => entry instanceof Map;

/** Undefined, or the first path with two inputs, or with one inside another that is given whole. */
export function clashIn(placed: readonly Placed<unknown>[]): string | undefined {
  const top: Folder<unknown> = new Map();
  return placed.find(({ path, leaf }) => !put(top, path, leaf))?.path;
}

/** The paths must not clash. "" is the root itself, and then there is nothing else. */
export function treeOf(placed: readonly Placed<Leaf>[]): Tree {
  const [only] = placed;
  if (only?.path === "" && only.leaf.kind === "directory") return { root: only.leaf.digest, directories: [] };
  const top: Folder<Leaf> = new Map();
  for (const { path, leaf } of placed) put(top, path, leaf);
  const directories: Encoded[] = [];
  return { root: encoded(top, directories), directories };
}

function put<T>(top: Folder<T>, path: string, leaf: T): boolean {
  const parts = path === "" ? [] : path.split("/");
  const name = parts.pop();
  if (name === undefined) {
    const isFree = top.size === 0;
    top.set("", { leaf });
    return isFree;
  }
  if (top.has("")) return false;
  let folder = top;
  for (const part of parts) {
    let next = folder.get(part);
    if (next === undefined) folder.set(part, (next = new Map()));
    if (!isFolder(next)) return false;
    folder = next;
  }
  if (folder.has(name)) return false;
  folder.set(name, { leaf });
  return true;
}

function encoded(folder: Folder<Leaf>, into: Encoded[]): Digest {
  const files: FileNode[] = [];
  const directories: DirectoryNode[] = [];
  const symlinks: SymlinkNode[] = [];
  for (const [name, entry] of folder) {
    if (isFolder(entry)) directories.push({ name, digest: wireOf(encoded(entry, into)) });
    else if (entry.leaf.kind === "directory") directories.push({ name, digest: wireOf(entry.leaf.digest) });
    else if (entry.leaf.kind === "link") symlinks.push({ name, target: entry.leaf.target });
    else files.push({ name, digest: wireOf(entry.leaf.digest), isExecutable: entry.leaf.isExecutable });
  }
  const directory: Directory = canonicalDirectory(files, directories, symlinks);
  const bytes = encodeDirectory(directory, "sha256");
  into.push(bytes);
  return bytes.digest;
}

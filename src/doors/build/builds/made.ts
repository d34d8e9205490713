/** The outputs of an action, as another action takes them. */
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import {
  Directory,
  Tree,
  type ActionResult,
  type Digest as WireDigest,
  type OutputDirectory,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import { encodeDirectory, type Encoded } from "#worker/outputs/canonical.ts";
import { digestOfWire } from "#doors/build/digests.ts";
import { isBelow } from "./check.ts";
import type { Leaf } from "./input-tree.ts";

export type Found = {
  readonly leaf: Leaf;
  /** Directories that must be written to the store, if the result has only a tree. */
  readonly directories: readonly Encoded[];
};

/** Which of the paths the result does not have. */
export function notMade(result: ActionResult, paths: readonly string[]): readonly string[] {
  const made = new Set(
    [
      ...result.outputFiles,
      ...result.outputDirectories,
      ...result.outputSymlinks,
      ...result.outputFileSymlinks,
      ...result.outputDirectorySymlinks,
    ].map(({ path }) => path),
  );
  return paths.filter((path) => !made.has(path));
}

/** Undefined when there is nothing at the path. */
export async function findMade(result: ActionResult, path: string, blobs: BlobStore): Promise<Found | undefined> {
  const file = result.outputFiles.find((one) => one.path === path);
  if (file) return whole({ kind: "file", digest: sha256(file.digest), isExecutable: file.isExecutable });
  const links = [...result.outputSymlinks, ...result.outputFileSymlinks, ...result.outputDirectorySymlinks];
  const link = links.find((one) => one.path === path);
  if (link) return whole({ kind: "link", target: link.target });
  const folder = result.outputDirectories.find((one) => one.path === path);
  if (folder) return await wholeFolder(folder, blobs);
  const above = result.outputDirectories.find((one) => isBelow(path, one.path));
  return above && (await within(above, path.slice(above.path.length + 1).split("/"), blobs));
}

const whole = (leaf: Leaf): Found => ({ leaf, directories: [] });
const sha256 = (digest: WireDigest | undefined): Digest => digestOfWire(digest, "sha256", "the digest of an output");

async function wholeFolder({ treeDigest, rootDirectoryDigest }: OutputDirectory, blobs: BlobStore): Promise<Found> {
  if (rootDirectoryDigest) return whole({ kind: "directory", digest: sha256(rootDirectoryDigest) });
  const { root, children } = await readTree(sha256(treeDigest), blobs);
  const directories = [root, ...children].map((directory) => encodeDirectory(directory, "sha256"));
  return { leaf: { kind: "directory", digest: directories[0]?.digest ?? "" }, directories };
}

type Read = (digest: Digest) => Promise<Directory | undefined>;

async function within(folder: OutputDirectory, parts: readonly string[], blobs: BlobStore): Promise<Found | undefined> {
  const { leaf, directories } = await wholeFolder(folder, blobs);
  const given = new Map(directories.map(({ digest, bytes }) => [digest, bytes]));
  const read: Read = async (digest) => decode(Directory, given.get(digest) ?? (await wholeBlob(blobs, digest)));
  let at: Leaf | undefined = leaf;
  for (const name of parts) at = at?.kind === "directory" ? entry(await read(at.digest), name) : undefined;
  return at && { leaf: at, directories };
}

function entry(directory: Directory | undefined, name: string): Leaf | undefined {
  const named = (one: { readonly name: string }): boolean => one.name === name;
  const file = directory?.files.find(named);
  if (file) return { kind: "file", digest: sha256(file.digest), isExecutable: file.isExecutable };
  const link = directory?.symlinks.find(named);
  if (link) return { kind: "link", target: link.target };
  const folder = directory?.directories.find(named);
  return folder && { kind: "directory", digest: sha256(folder.digest) };
}

async function readTree(
  digest: Digest,
  blobs: BlobStore,
): Promise<{ root: Directory; children: readonly Directory[] }> {
  const tree = decode(Tree, await wholeBlob(blobs, digest));
  return { root: tree.root ?? { files: [], directories: [], symlinks: [] }, children: tree.children };
}

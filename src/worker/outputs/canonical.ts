/**
 * Encodes directories and trees to canonical bytes: entries sorted by the bytes of their names, defaults left out,
 * every directory once (REAPI-71, REAPI-80). Pure.
 */
import { digestText, type Digest, type DigestFunction } from "#base/digest.ts";
import { createHasher } from "#blobs/hashing.ts";
import { encode } from "#wire/message.ts";
import {
  Directory,
  Tree,
  type DirectoryNode,
  type FileNode,
  type SymlinkNode,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";

export type Encoded = { readonly digest: Digest; readonly bytes: Buffer };

/** REAPI-71: JavaScript's order differs above U+FFFF. */
export const byBytes = (a: { readonly name: string }, b: { readonly name: string }): number =>
  Buffer.compare(Buffer.from(a.name), Buffer.from(b.name));

export function canonicalDirectory(
  files: readonly FileNode[],
  directories: readonly DirectoryNode[],
  symlinks: readonly SymlinkNode[],
): Directory {
  return {
    files: files.toSorted(byBytes),
    directories: directories.toSorted(byBytes),
    symlinks: symlinks.toSorted(byBytes),
  };
}

export const encodeDirectory = (directory: Directory, fn: DigestFunction): Encoded =>
  named(encode(Directory, directory), fn);

/**
 * `below` has children before their parents, each once; a Tree lists parents first, so that it can be read as a stream.
 */
export function encodeTree(root: Directory, below: readonly Directory[], fn: DigestFunction): Encoded {
  return named(encode(Tree, { root, children: below.toReversed() }), fn);
}

export function named(bytes: Buffer, fn: DigestFunction): Encoded {
  const hasher = createHasher(fn);
  hasher.update(bytes);
  return { digest: digestText(fn, hasher.hex(), bytes.length), bytes };
}

/** All blobs that a result refers to: a client that takes the result needs all of them. */
import { digestText, hashBytes, parseDigest, type Digest, type DigestFunction } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { DigestBatch, BlobStore, Prompt } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import {
  Directory,
  Tree,
  type Digest as WireDigest,
  type OutputDirectory,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import { digestOfWire, isEmpty } from "#doors/build/digests.ts";
import { invalid } from "#doors/build/refusals.ts";

/** For all trees and directories of one result together. */
const treeBytesMax = 256 * 1024 * 1024;
const digestsMax = 2_000_000;

/** Almost no result names more; read before the buffer is reused. */
const foundOnes = new Uint8Array(4_096);

/** Packed: a result may name a hundred thousand blobs, and thousands of closures are cached. */
export class Closure {
  readonly fn: DigestFunction;
  readonly #hashes: Uint8Array<ArrayBuffer>;
  readonly #sizes: Float64Array;
  readonly #batch: DigestBatch;

  constructor(fn: DigestFunction, digests: ReadonlySet<Digest>) {
    this.fn = fn;
    this.#hashes = new Uint8Array(digests.size * hashBytes[fn]);
    this.#sizes = new Float64Array(digests.size);
    const words = new Uint32Array(this.#hashes.buffer);
    this.#batch = { hashes: this.#hashes, words, sizes: this.#sizes, count: digests.size };
    let i = 0;
    for (const digest of digests) {
      const { hash = "", sizeBytes = 0 } = parseDigest(digest) ?? {};
      this.#hashes.set(Buffer.from(hash, "hex"), i * hashBytes[fn]);
      this.#sizes[i] = sizeBytes;
      i += 1;
    }
  }

  get size(): number {
    return this.#batch.count;
  }

  /** Whether all of them exist; counts as a use of all of them. */
  isThere(prompt: Prompt): boolean {
    const { size } = this;
    if (prompt.hasMany && size <= foundOnes.length) {
      foundOnes.fill(0, 0, size);
      prompt.hasMany(this.fn, this.#batch, foundOnes);
      for (let i = 0; i < size; i += 1) if (foundOnes[i] === 0) return false;
      return true;
    }
    const step = hashBytes[this.fn];
    let all = true;
    for (let i = 0; i < this.#sizes.length; i += 1)
      if (!prompt.has(this.fn, this.#hashes, i * step, this.#sizes[i] as number)) all = false;
    return all;
  }

  digests(): readonly Digest[] {
    const step = hashBytes[this.fn];
    return Array.from(this.#sizes, (sizeBytes, i) =>
      digestText(this.fn, Buffer.from(this.#hashes.subarray(i * step, (i + 1) * step)).toString("hex"), sizeBytes),
    );
  }
}

/** The part of a result that refers to blobs, in whichever form it came. */
export type NamingResult = {
  readonly outputFiles: readonly { readonly digest?: WireDigest | undefined }[];
  readonly outputDirectories: readonly Pick<OutputDirectory, "path" | "treeDigest" | "rootDirectoryDigest">[];
  readonly stdoutDigest?: WireDigest | undefined;
  readonly stderrDigest?: WireDigest | undefined;
};

/**
 * Reads trees and directories. Throws Fault "not-found" when one of them is missing, and INVALID_ARGUMENT if it cannot
 * be decoded or names an invalid digest.
 */
export async function closureOf(result: NamingResult, fn: DigestFunction, blobs: BlobStore): Promise<Closure> {
  const gathering = new Gathering(fn, blobs);
  const { trees, roots } = addNamed(result, gathering);
  for (const tree of trees) await gathering.tree(tree);
  for (const root of roots) await gathering.directories(root);
  return new Closure(fn, gathering.digests);
}

/** Throws INVALID_ARGUMENT for a result with an invalid digest; does not read the blobs that it names. */
export function checkNamed(result: NamingResult, fn: DigestFunction): void {
  addNamed(result, { add: (digest, what) => digestOfWire(digest, fn, what) });
}

function addNamed(
  { outputFiles, outputDirectories, stdoutDigest, stderrDigest }: NamingResult,
  to: Pick<Gathering, "add">,
): { readonly trees: readonly Digest[]; readonly roots: readonly Digest[] } {
  for (const { digest } of outputFiles) to.add(digest, "the digest of an output file");
  for (const digest of [stdoutDigest, stderrDigest]) if (digest) to.add(digest, "a digest");
  const trees: Digest[] = [];
  const roots: Digest[] = [];
  for (const { treeDigest, rootDirectoryDigest, path } of outputDirectories) {
    if (!treeDigest && !rootDirectoryDigest) throw invalid(`output directory ${path} has neither tree nor root`);
    if (treeDigest) trees.push(to.add(treeDigest, "the digest of a tree"));
    if (rootDirectoryDigest) roots.push(to.add(rootDirectoryDigest, "a root directory"));
  }
  return { trees, roots };
}

/** This directory, all directories below it, and their files; throws Fault "not-found" when a directory is missing. */
export async function directoryClosure(
  top: Digest,
  fn: DigestFunction,
  blobs: BlobStore,
): Promise<ReadonlySet<Digest>> {
  const gathering = new Gathering(fn, blobs);
  await gathering.directories(top);
  return gathering.digests;
}

class Gathering {
  readonly digests = new Set<Digest>();
  readonly #fn: DigestFunction;
  readonly #blobs: BlobStore;
  #treeBytesLeft = treeBytesMax;

  constructor(fn: DigestFunction, blobs: BlobStore) {
    this.#fn = fn;
    this.#blobs = blobs;
  }

  /** The empty blob always exists. */
  add(wire: WireDigest | undefined, what: string): Digest {
    const digest = digestOfWire(wire, this.#fn, what);
    if (isEmpty(digest)) return digest;
    this.digests.add(digest);
    if (this.digests.size > digestsMax) throw invalid(`more than ${digestsMax} blobs in one result`);
    return digest;
  }

  async tree(digest: Digest): Promise<void> {
    const { root, children } = decoded(Tree, await this.#read(digest));
    for (const { files } of root ? [root, ...children] : children)
      for (const file of files) this.add(file.digest, "the digest of a file in a tree");
  }

  async directories(top: Digest): Promise<void> {
    const seen = new Set([top]);
    for (const digest of seen) {
      const { files, directories } = decoded(Directory, await this.#read(digest));
      for (const file of files) this.add(file.digest, "the digest of a file");
      for (const one of directories) seen.add(this.add(one.digest, "the digest of a directory"));
    }
  }

  async #read(digest: Digest): Promise<Uint8Array> {
    if (isEmpty(digest)) return new Uint8Array();
    this.#treeBytesLeft -= parseDigest(digest)?.sizeBytes ?? 0;
    if (this.#treeBytesLeft < 0) throw invalid(`trees of more than ${treeBytesMax} bytes in one result`);
    return await wholeBlob(this.#blobs, digest);
  }
}

function decoded<T>(type: Parameters<typeof decode<T>>[0], bytes: Uint8Array): T {
  try {
    return decode(type, bytes);
  } catch (error) {
    throw isFault(error, "invalid") ? invalid(error.message) : error;
  }
}

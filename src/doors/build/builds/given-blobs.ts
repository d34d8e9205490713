/** The blobs that a build takes from the store, and whether all of them exist. */
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Build } from "#wire/generated/millrace/build/v1/builds.ts";
import { directoryClosure } from "#doors/build/cache/closure.ts";

/** Trees are read; if directories of a tree are missing, only the first one is reported. */
export async function missingOf({ actions }: Build, blobs: BlobStore): Promise<readonly Digest[]> {
  const files = new Set<Digest>();
  const trees = new Set<Digest>();
  for (const { inputs } of actions)
    for (const { source } of inputs) {
      if (source?.kind === "blob") files.add(source.value);
      if (source?.kind === "tree") trees.add(source.value);
    }
  const lost: Digest[] = [];
  for (const tree of trees)
    try {
      for (const digest of await directoryClosure(tree, "sha256", blobs)) files.add(digest);
    } catch (error) {
      if (!isFault(error, "not-found")) throw error;
      const { digest } = error.facts;
      lost.push(typeof digest === "string" ? digest : tree);
    }
  return [...new Set([...lost, ...(await blobs.missing([...files]))])];
}

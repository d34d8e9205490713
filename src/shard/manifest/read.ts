/** Reads a manifest: for planners and runners, whose inputs name it by its digest. */
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { readPage, readRoot, type ManifestEntry, type ManifestRoot } from "./format.ts";

export const readManifest = async (blobs: BlobStore, digest: Digest): Promise<ManifestRoot> =>
  readRoot(await wholeBlob(blobs, digest));

/** All tasks and their results, in order, one page in memory at a time. */
export async function* manifestEntries(blobs: BlobStore, digest: Digest): AsyncGenerator<ManifestEntry> {
  for (const { pages } of (await readManifest(blobs, digest)).sets)
    for (const page of pages) yield* readPage(await wholeBlob(blobs, page));
}

/** The result of the array's task with this index; undefined if there is none. */
export async function manifestEntryAt(
  blobs: BlobStore,
  digest: Digest,
  index: number,
): Promise<ManifestEntry | undefined> {
  const { sets, pageTasks } = await readManifest(blobs, digest);
  const set = sets.find(({ first, tasks }) => first !== undefined && index >= first && index < first + tasks);
  if (set?.first === undefined) return undefined;
  const place = index - set.first;
  const page = set.pages[Math.floor(place / pageTasks)];
  return page === undefined ? undefined : readPage(await wholeBlob(blobs, page))[place % pageTasks];
}

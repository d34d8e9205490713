/** Reads a manifest: for planners and runners, whose inputs name it by its digest. */
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { readEntry, readPage, readRoot, type ManifestEntry, type ManifestRoot } from "./format.ts";

export const readManifest = async (blobs: BlobStore, digest: Digest): Promise<ManifestRoot> =>
  readRoot(await wholeBlob(blobs, digest));

/** All tasks and their results, in order, one page in memory at a time. */
export async function* manifestEntries(blobs: BlobStore, digest: Digest): AsyncGenerator<ManifestEntry> {
  for (const { pages } of (await readManifest(blobs, digest)).sets)
    for (const page of pages) yield* readPage(await wholeBlob(blobs, page));
}

/**
 * The tasks from one place on, one line of a page in memory at a time: results are up to 64 KiB each, and a page lists
 * a thousand.
 */
export async function* manifestLines(
  blobs: BlobStore,
  { sets, pageTasks }: ManifestRoot,
  { from, limit }: { readonly from: number; readonly limit: number },
): AsyncGenerator<ManifestEntry> {
  let place = 0;
  const end = from + limit;
  for (const { tasks, pages } of sets)
    for (const [i, page] of pages.entries()) {
      const count = Math.min(pageTasks, tasks - i * pageTasks);
      if (place + count > from && place < end)
        for await (const line of linesOf(blobs.read(page))) {
          if (place >= end) return;
          if (place >= from) yield readEntry(line);
          place += 1;
        }
      else place += count;
    }
}

async function* linesOf(parts: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const part of parts) {
    const [first = "", ...more] = decoder.decode(part, { stream: true }).split("\n");
    const last = more.pop();
    if (last === undefined) {
      rest += first;
      continue;
    }
    yield rest + first;
    yield* more;
    rest = last;
  }
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

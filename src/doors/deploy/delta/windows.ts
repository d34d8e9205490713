/** Which parts of an older release a block of a new one is likely to resemble: the same file, near the same place. */
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { placesOf, rowOf, type Row } from "#doors/deploy/manifest/layout.ts";
import { distinctSegments, segmentBytes, type Manifest, type ManifestFile } from "#doors/deploy/manifest/manifest.ts";
import type { Region } from "./diff-threads.ts";

/** Of old bytes that a block is compared with. */
const windowBytesMax = 2 * segmentBytes;
const beforeBytes = segmentBytes / 2;

type Content = Pick<Manifest, "files">;

/** Runs of the segments that the base lacks, in the order of the release, each at most as long as one whole segment. */
export function blocksOf(fresh: Content, base: Content | undefined): readonly (readonly Digest[])[] {
  const known = new Set(base && distinctSegments(base));
  const blocks: Digest[][] = [];
  let bytes = Infinity;
  for (const digest of distinctSegments(fresh)) {
    const size = digestSizeBytes(digest);
    if (known.has(digest) || size === 0) continue;
    if (bytes + size > segmentBytes) {
      blocks.push([]);
      bytes = 0;
    }
    blocks.at(-1)?.push(digest);
    bytes += size;
  }
  return blocks;
}

/** Finds windows in the base for segments of the release. */
export class Windows {
  readonly #base: Row;
  readonly #places;
  readonly #byPath = new Map<string, ManifestFile>();
  readonly #byStem = new Map<string, ManifestFile>();

  constructor(fresh: Content, base: Content) {
    this.#base = rowOf(base);
    this.#places = placesOf(fresh);
    for (const file of base.files) {
      this.#byPath.set(file.path, file);
      this.#byStem.set(stemOf(file.path), file);
    }
  }

  /** In the order of the base's row, apart from each other. */
  of(block: readonly Digest[]): readonly Region[] {
    const found: Region[] = [];
    let left = windowBytesMax;
    for (const digest of block) {
      const [place] = this.#places(digest);
      const file = place && (this.#byPath.get(place.path) ?? this.#byStem.get(stemOf(place.path)));
      if (!file || left <= 0) continue;
      for (const region of this.#within(file, place.offset)) {
        const length = Math.min(region.length, left);
        left -= length;
        if (length > 0) found.push({ row: region.row, length });
      }
    }
    return merged(found);
  }

  #within({ segments, sizeBytes }: ManifestFile, offset: number): readonly Region[] {
    const length = Math.min(sizeBytes, windowBytesMax);
    const from = Math.max(0, Math.min(offset - beforeBytes, sizeBytes - length));
    const regions: Region[] = [];
    for (const [index, digest] of segments.entries()) {
      const start = index * segmentBytes;
      const [begin, end] = [Math.max(from, start), Math.min(from + length, start + digestSizeBytes(digest))];
      const row = this.#base.startOf(digest);
      if (row !== undefined && end > begin) regions.push({ row: row + begin - start, length: end - begin });
    }
    return regions;
  }
}

/** Overlapping and neighbouring regions become one: what goes on across them stays one match. */
function merged(regions: readonly Region[]): readonly Region[] {
  const all: Region[] = [];
  for (const region of regions.toSorted((a, b) => a.row - b.row)) {
    const last = all.at(-1);
    if (!last || region.row > last.row + last.length) all.push(region);
    else all[all.length - 1] = { row: last.row, length: Math.max(last.length, region.row + region.length - last.row) };
  }
  return all;
}

/** Names of files often carry a version or a hash: `main.4f2a91.js`, `libweb-1.2.3.so`. */
const stemOf = (path: string): string =>
  path.replace(/[-._][0-9a-f]{6,}(?=[-._])|\d+/gi, "").replace(/([-._])[-._]+/g, "$1");

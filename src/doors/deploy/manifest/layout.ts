/**
 * Where a unit's bytes lie. All distinct segments, in the order of the manifest, make one long row of bytes, and the
 * row is cut into units: so ten thousand small files travel as a few units, and a 10 GB binary as ten thousand.
 */
import { createHash } from "node:crypto";
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import { distinctSegments, segmentBytes, type Manifest, type Units } from "./manifest.ts";

/** A part of a unit: `length` bytes at `at` of the unit, which are those of a segment from `offset` on. */
export type Piece = {
  readonly at: number;
  readonly length: number;
  readonly segment: Digest;
  readonly offset: number;
};

/** A place on disk that has the bytes of a segment. */
export type SegmentPlace = { readonly path: string; readonly offset: number };

export type Layout = {
  readonly unitBytes: number;
  readonly units: number;
  readonly sha256: readonly string[];
  sizeOf(unit: number): number;
  piecesOf(unit: number): readonly Piece[];
  placesOf(segment: Digest): readonly SegmentPlace[];
};

const unitsWanted = 2_048;
const unitBytesMin = 64 * 1024;
const unitBytesMax = 1024 * 1024;

/** Small releases have small units, so that there are enough to keep all uplinks busy. */
export function unitBytesFor(sizeBytes: number): number {
  let bytes = unitBytesMin;
  while (bytes < unitBytesMax && sizeBytes / bytes > unitsWanted) bytes *= 2;
  return bytes;
}

/** All distinct segments of a release in a row: where each begins, and what lies in a range. */
export type Row = {
  readonly segments: readonly Digest[];
  readonly bytes: number;
  startOf(segment: Digest): number | undefined;
  /** `at` counts from the beginning of the range. */
  piecesIn(from: number, to: number): readonly Piece[];
};

export function rowOf(content: Pick<Manifest, "files">): Row {
  const segments = distinctSegments(content);
  const starts: number[] = [];
  const startOf = new Map<Digest, number>();
  let total = 0;
  for (const digest of segments) {
    starts.push(total);
    startOf.set(digest, total);
    total += digestSizeBytes(digest);
  }
  return {
    segments,
    bytes: total,
    startOf: (segment) => startOf.get(segment),
    piecesIn(from, to) {
      const pieces: Piece[] = [];
      for (let i = lastAtOrBefore(starts, from); i < segments.length && (starts[i] ?? to) < to; i += 1) {
        const segment = segments[i] ?? "";
        const start = starts[i] ?? 0;
        const begin = Math.max(from, start);
        const length = Math.min(to, start + digestSizeBytes(segment)) - begin;
        if (length > 0) pieces.push({ at: begin - from, length, segment, offset: begin - start });
      }
      return pieces;
    },
  };
}

/** Where a release's segments are in its files. */
export function placesOf({ files }: Pick<Manifest, "files">): (segment: Digest) => readonly SegmentPlace[] {
  const places = new Map<string, SegmentPlace[]>();
  for (const file of files)
    for (const [index, digest] of file.segments.entries()) {
      const known = places.get(digest) ?? [];
      known.push({ path: file.path, offset: index * segmentBytes });
      places.set(digest, known);
    }
  return (segment) => places.get(segment) ?? [];
}

export function layoutOf(manifest: Pick<Manifest, "files">, { bytes, sha256 }: Units): Layout {
  const row = rowOf(manifest);
  const sizeOf = (unit: number): number => Math.min(bytes, row.bytes - unit * bytes);
  return {
    unitBytes: bytes,
    units: Math.ceil(row.bytes / bytes),
    sha256,
    sizeOf,
    placesOf: placesOf(manifest),
    piecesOf: (unit) => row.piecesIn(unit * bytes, unit * bytes + sizeOf(unit)),
  };
}

/** A unit's bytes from the store. */
export async function readUnit(layout: Layout, unit: number, blobs: Pick<BlobStore, "read">): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(layout.sizeOf(unit));
  for (const { at, length, segment, offset } of layout.piecesOf(unit)) {
    let written = 0;
    for await (const part of blobs.read(segment, { offset, length })) {
      bytes.set(part.subarray(0, length - written), at + written);
      written += part.length;
    }
  }
  return bytes;
}

/** The hashes of all units, from what the store has of the segments. */
export async function hashUnits(manifest: Pick<Manifest, "files">, blobs: Pick<BlobStore, "read">): Promise<Units> {
  const sizeBytes = distinctSegments(manifest).reduce((sum, digest) => sum + digestSizeBytes(digest), 0);
  const layout = layoutOf(manifest, { bytes: unitBytesFor(sizeBytes), sha256: [] });
  const sha256: string[] = [];
  for (let unit = 0; unit < layout.units; unit += 1) sha256.push(unitHash(await readUnit(layout, unit, blobs)));
  return { bytes: layout.unitBytes, sha256 };
}

export const unitHash = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("base64url");

/** The last index whose start is not beyond `at`. */
function lastAtOrBefore(starts: readonly number[], at: number): number {
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] ?? 0) <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

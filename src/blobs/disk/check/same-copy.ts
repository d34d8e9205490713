/** Tells whether a blob's copy is still the one that a caller began to look at. */
import type { DigestParts } from "#base/digest.ts";
import type { Core } from "#blobs/disk/core.ts";
import type { RecordPosition } from "#blobs/disk/log/record.ts";

/**
 * An entry and the place of its record. An entry's number alone does not identify a copy: it is reused after an
 * eviction, often by the same blob, and an upload that replaces the copy keeps it.
 */
export type Copy = RecordPosition & { readonly entry: number };

export function copyOf({ holdings: { table } }: Core, entry: number): Copy {
  return { entry, segment: table.segment(entry), offset: table.offset(entry) };
}

/** False if the blob was evicted, written again or moved since: then the caller has to look again. */
export function isStill(core: Core, parts: DigestParts, { entry, segment, offset }: Copy): boolean {
  const { table } = core.holdings;
  return core.find(parts) === entry && table.segment(entry) === segment && table.offset(entry) === offset;
}

/** For loops that look again: each turn needs a writer or the janitor to be in between once more. */
export const looksMax = 10;

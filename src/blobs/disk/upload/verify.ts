/** Whether a blob's bytes still match its digest. */
import type { DigestParts } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { hashHex } from "#blobs/hashing.ts";
import type { BetweenSteps } from "#blobs/disk/check/file-checks.ts";
import type { Core } from "#blobs/disk/core.ts";
import { readRecordOf } from "#blobs/disk/log/packed-blobs.ts";
import { flags } from "#blobs/disk/table/table.ts";

/**
 * Reads it from the disk, whatever is in memory. False if the bytes do not match or are gone. Throws if they cannot be
 * read for another reason.
 */
export async function verifyEntry(
  core: Core,
  entry: number,
  parts: DigestParts,
  between?: BetweenSteps,
): Promise<boolean> {
  if (core.holdings.table.has(entry, flags.file)) return await core.checks.check(entry, parts, between);
  try {
    const bytes = await readRecordOf(core, entry, parts);
    await between?.(bytes.length);
    return hashHex(parts.fn, bytes) === parts.hash;
  } catch (error) {
    if (isFault(error, "not-found") || isFault(error, "corrupt")) return false;
    throw error;
  }
}

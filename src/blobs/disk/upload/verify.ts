/** Whether the bytes of a blob's copy still match its digest. */
import type { DigestParts } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { hashHex } from "#blobs/hashing.ts";
import type { BetweenSteps, Verdict } from "#blobs/disk/check/file-checks.ts";
import { copyOf, isStill } from "#blobs/disk/check/same-copy.ts";
import type { Core } from "#blobs/disk/core.ts";
import { readRecordOf } from "#blobs/disk/log/packed-blobs.ts";
import { flags } from "#blobs/disk/table/table.ts";

/**
 * Reads it from the disk, whatever is in memory. "wrong" if the bytes do not match or are gone. Throws if they cannot
 * be read for another reason.
 */
export async function verifyEntry(
  core: Core,
  entry: number,
  parts: DigestParts,
  between?: BetweenSteps,
): Promise<Verdict> {
  if (core.holdings.table.has(entry, flags.file)) return await core.checks.check(entry, parts, between);
  const copy = copyOf(core, entry);
  const isRight = await hasDigest(core, entry, parts, between);
  if (core.find(parts) !== entry) return "changed";
  if (isRight) return "right";
  return isStill(core, parts, copy) ? "wrong" : "changed";
}

async function hasDigest(core: Core, entry: number, parts: DigestParts, between?: BetweenSteps): Promise<boolean> {
  try {
    const bytes = await readRecordOf(core, entry, parts);
    await between?.(bytes.length);
    return hashHex(parts.fn, bytes) === parts.hash;
  } catch (error) {
    if (isFault(error, "corrupt")) return false;
    throw error;
  }
}

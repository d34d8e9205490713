/** Whether a blob's bytes still match its digest. */
import type { DigestParts } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { createHasher, hashHex } from "#blobs/hashing.ts";
import type { Core } from "#blobs/disk/core.ts";
import { readLarge } from "./large-blobs.ts";
import { readPacked } from "#blobs/disk/log/packed-blobs.ts";
import { flags } from "#blobs/disk/table/table.ts";

/** False if they do not match or are gone. Throws if they cannot be read for another reason. */
export async function verifyEntry(core: Core, entry: number, parts: DigestParts): Promise<boolean> {
  try {
    if (!core.holdings.table.has(entry, flags.file))
      return hashHex(parts.fn, await readPacked(core, entry, parts)) === parts.hash;
    const hasher = createHasher(parts.fn);
    const span = { from: 0, to: parts.sizeBytes };
    for await (const piece of readLarge(core, entry, parts, { span, form: "plain" })) hasher.update(piece);
    return hasher.hex() === parts.hash;
  } catch (error) {
    if (isFault(error, "not-found")) return false;
    throw error;
  }
}

/** What an operator may ask of the store. */
import { digestFunctions, digestText, type Digest, type DigestParts } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { StoreStat, Upkeep, Verified } from "#blobs/upkeep.ts";
import type { Core } from "#blobs/disk/core.ts";
import type { Janitor } from "./janitor.ts";
import { hashLength, namedFunction } from "#blobs/disk/table/key.ts";
import type { PartialUploads } from "#blobs/disk/upload/partials.ts";
import { headerBytes } from "#blobs/disk/log/record.ts";
import { flags } from "#blobs/disk/table/table.ts";
import { verifyEntry } from "#blobs/disk/upload/verify.ts";

const slice = 20_000;
/** Progress is reported after so many blobs or bytes. */
const tellBlobs = 1_000;
const tellBytes = 256 * 1024 * 1024;

export function createDiskUpkeep(core: Core, janitor: Janitor, partials: PartialUploads): Upkeep {
  const stat = async (): Promise<StoreStat> => {
    const { table } = core.holdings;
    let entries = 0;
    let oldestSec = Number.POSITIVE_INFINITY;
    for (let entry = 0; entry < table.end; entry += 1) {
      if (entry % slice === slice - 1) await new Promise(setImmediate);
      if (!table.isTaken(entry)) continue;
      if (table.fn(entry) === namedFunction) entries += 1;
      oldestSec = Math.min(oldestSec, table.accessSec(entry));
    }
    return {
      blobs: table.count - entries,
      entries,
      usedBytes: core.budget.usedBytes - partials.reservedBytes,
      reservedBytes: partials.reservedBytes,
      sizeBytesMax: core.budget.sizeBytesMax,
      indexBytes: table.sizeBytes,
      ...(Number.isFinite(oldestSec) && { oldestUseAtMs: oldestSec * 1_000 }),
      evictedBlobs: janitor.evicted,
      evictedBytes: janitor.evictedBytes,
    };
  };
  return {
    stat,
    figures: () => ({
      usedBytes: core.budget.usedBytes,
      sizeBytesMax: core.budget.sizeBytesMax,
      evictedBlobs: janitor.evicted,
      evictedBytes: janitor.evictedBytes,
      evictionAgeSec: janitor.evictionAgeSec,
      checkedBytes: core.checks.checkedBytes,
      damagedBlobs: core.damagedBlobs,
    }),
    async evict(downToBytes) {
      const wanted = core.budget.usedBytes - partials.reservedBytes - downToBytes;
      if (wanted > 0) await janitor.free(wanted);
      return await stat();
    },
    verify: (signal) => verifyAll(core, signal),
  };
}

async function* verifyAll(core: Core, signal: AbortSignal): AsyncGenerator<Verified> {
  const { table } = core.holdings;
  const of = table.count;
  let [checked, bytes, toldAt, toldBytes] = [0, 0, 0, 0];
  let wrong: Digest[] = [];
  for (let entry = 0; entry < table.end; entry += 1) {
    signal.throwIfAborted();
    if (!table.isTaken(entry) || table.fn(entry) === namedFunction) continue;
    const parts = await partsOfEntry(core, entry);
    if (!parts) continue; // its record could not be read, so it was dropped
    const isRight = await verifyEntry(core, entry, parts);
    const digest = digestText(parts.fn, parts.hash, parts.sizeBytes);
    if (!isRight) wrong.push(digest);
    if (!isRight && core.find(parts) === entry) await core.dropDamaged(entry, { digest }).catch(() => {});
    checked += 1;
    bytes += parts.sizeBytes;
    if (checked - toldAt < tellBlobs && bytes - toldBytes < tellBytes) continue;
    yield { checked, of, bytes, wrong };
    [toldAt, toldBytes, wrong] = [checked, bytes, []];
    await new Promise(setImmediate);
  }
  yield { checked, of, bytes, wrong };
}

/** The digest: the key itself for most functions; for longer hashes it is in the record. */
async function partsOfEntry(core: Core, entry: number): Promise<DigestParts | undefined> {
  const { table } = core.holdings;
  const number = table.fn(entry);
  const fn = digestFunctions[number];
  if (!fn) return undefined;
  const sizeBytes = table.sizeOf(entry);
  const key = table.key(entry);
  const length = hashLength(number);
  if (length <= key.byteLength)
    return { fn, hash: Buffer.from(key.buffer, key.byteOffset, length).toString("hex"), sizeBytes };
  try {
    const { bytes } = table.has(entry, flags.file)
      ? await core.reader.read({
          segment: table.segment(entry),
          offset: table.offset(entry),
          lengthBytes: headerBytes + length + 16,
        })
      : await core.recordOf(entry);
    return { fn, hash: bytes.toString("hex", headerBytes, headerBytes + length), sizeBytes };
  } catch (error) {
    if (isFault(error, "corrupt") && table.isTaken(entry)) await core.drop([entry]);
    return undefined;
  }
}

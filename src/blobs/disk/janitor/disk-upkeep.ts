/** What an operator may ask of the store. */
import type { Digest } from "#base/digest.ts";
import type { StoreStat, Upkeep, Verified } from "#blobs/upkeep.ts";
import type { Core } from "#blobs/disk/core.ts";
import type { Janitor } from "./janitor.ts";
import { namedFunction } from "#blobs/disk/table/key.ts";
import type { PartialUploads } from "#blobs/disk/upload/partials.ts";
import { checkEntry } from "#blobs/disk/check/check-entry.ts";
import type { Scrubber } from "#blobs/disk/check/scrubber.ts";

const slice = 20_000;
/** Progress is reported after so many blobs or bytes. */
const tellBlobs = 1_000;
const tellBytes = 256 * 1024 * 1024;

export type UpkeepParts = {
  readonly janitor: Janitor;
  readonly partials: PartialUploads;
  readonly scrubber: Pick<Scrubber, "state">;
};

export function createDiskUpkeep(core: Core, { janitor, partials, scrubber }: UpkeepParts): Upkeep {
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
      damagedBlobs: core.damagedBlobs,
      ...(scrubber.state.endedAtMs > 0 && { scrubbedAtMs: scrubber.state.endedAtMs }),
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
      scrub: scrubber.state,
    }),
    async evict(downToBytes) {
      await janitor.free(() => core.budget.usedBytes - partials.reservedBytes - downToBytes);
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
    const found = await checkEntry(core, entry);
    if (!found) continue; // its record could not be read, so it was dropped
    if (found.wrong !== undefined) wrong.push(found.wrong);
    checked += 1;
    bytes += found.bytes;
    if (checked - toldAt < tellBlobs && bytes - toldBytes < tellBytes) continue;
    yield { checked, of, bytes, wrong };
    [toldAt, toldBytes, wrong] = [checked, bytes, []];
    await new Promise(setImmediate);
  }
  yield { checked, of, bytes, wrong };
}

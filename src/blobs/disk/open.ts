/**
 * A store on this machine's disk: small blobs and names in a packed log, large blobs in files, one table of all of it
 * in memory. docs/adr/0018 says why.
 *
 *   log/        segments of the packed log, which is authoritative
 *   checkpoint  a copy of the table, so that a start reads little of the log
 *   files/      large blobs
 *   uploads/    unfinished uploads
 *   streams/    live output of running tasks
 *   scrub       where the scrubber is
 */
import { randomUUID } from "node:crypto";
import { mkdirSync, statfsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Clock } from "#base/clock.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { BlobStore, Store, TenantStore } from "#blobs/store.ts";
import type { Streams } from "#blobs/streams.ts";
import { realSyncs, type Syncs } from "#blobs/syncs.ts";
import type { UploadOwner } from "#blobs/upload-limits.ts";
import type { Upkeep } from "#blobs/upkeep.ts";
import { Checkpoints } from "./log/checkpoints.ts";
import { Core } from "./core.ts";
import { Scrubber } from "./check/scrubber.ts";
import { createDiskBlobs, nodeView, viewOf, type TenantView, type StoreLarge } from "./disk-blobs.ts";
import { createDiskIndex } from "./table/disk-index.ts";
import { createDiskStreams } from "./streams/disk-streams.ts";
import { createDiskUpkeep } from "./janitor/disk-upkeep.ts";
import { adoptFile } from "./upload/adopt-file.ts";
import { openUpload } from "./upload/disk-upload.ts";
import { Holdings } from "./holdings.ts";
import { Housekeeping } from "./janitor/housekeeping.ts";
import { Janitor } from "./janitor/janitor.ts";
import { lockStore, type StoreLock } from "./lock.ts";
import { diskOptions, type DiskOptions } from "./options.ts";
import { ownerOf, PartialUploads } from "./upload/partials.ts";
import { suspectAfterReboot } from "./log/power-loss.ts";
import { recover, type Recovered } from "./log/recovery.ts";
import { SpaceBudget } from "./janitor/space-budget.ts";
import { Segments } from "./log/segments.ts";
import { createDiskUploads } from "./upload/uploads.ts";

export type DiskStore = Store & {
  /** The node's own view: every blob is visible, and blobs written through it belong to no tenant. */
  readonly all: BlobStore;
  readonly index: ActionIndex;
  readonly streams: Streams;
  readonly recovered: Recovered;
  readonly upkeep: Upkeep;
  /** The periodic work. */
  readonly housekeeping: Housekeeping;
};

export type OpenDisk = Partial<DiskOptions> & { readonly clock: Clock };

export async function openDiskStore(root: string, { clock, ...given }: OpenDisk): Promise<DiskStore> {
  await makeFolders(root, given.syncs ?? realSyncs);
  const { blocks, bsize } = statfsSync(root);
  const options = diskOptions(given, blocks * bsize);
  const lock = lockStore(root);
  try {
    return openLocked(root, { clock, options, lock });
  } catch (error) {
    lock.unlock();
    throw error;
  }
}

/** Makes the folders and their names durable: all data would be lost with them. */
async function makeFolders(root: string, syncs: Syncs): Promise<void> {
  const made = ["log", "files", "uploads", "streams"].map((folder) =>
    mkdirSync(join(root, folder), { recursive: true, mode: 0o700 }),
  );
  const first = made.find((path) => path !== undefined);
  if (first === undefined) return;
  const top = dirname(resolve(first));
  for (let folder = resolve(root); ; folder = dirname(folder)) {
    await syncs.folder(folder);
    if (folder === top || folder === dirname(folder)) return;
  }
}

type Locked = { readonly clock: Clock; readonly options: DiskOptions; readonly lock: StoreLock };

function openLocked(root: string, { clock, options, lock }: Locked): DiskStore {
  const holdings = new Holdings();
  const segments = new Segments(join(root, "log"));
  const recovered = recover(root, holdings, segments);
  const suspects = suspectAfterReboot(root, holdings);
  holdings.endRecovery();
  const budget = new SpaceBudget(options.sizeBytesMax, 2 * options.segmentBytes);
  budget.takeOwn(countAll(holdings, segments));
  holdings.accounts = {
    live: (segment, bytes) => segments.changeLive(segment, bytes),
    file: (bytes) => (bytes > 0 ? budget.takeOwn(bytes) : budget.give(-bytes)),
  };
  const core = new Core({ root, options, clock, holdings, segments, budget, recovered }, join(root, "files"));
  const partials = new PartialUploads(core);
  const janitor = new Janitor(core);
  core.makeSpace = async (bytes) => {
    await partials.reclaim(true);
    return budget.fits(bytes) || (await janitor.makeSpace(bytes));
  };
  core.makeEntries = () => janitor.makeEntries();
  const checkpoints = new Checkpoints(core, recovered, suspects > 0);
  const housekeeping = new Housekeeping(core, { janitor, partials, checkpoints, lock });
  const scrubber = new Scrubber(core, options.scrub);
  const index = createDiskIndex(core);
  const views = new Map<string, TenantStore>();
  let isClosed = false;

  const forTenant = (tenant: string): TenantStore => {
    let view = views.get(tenant);
    if (!view) views.set(tenant, (view = tenantStore(core, partials, tenant)));
    return view;
  };

  const { counted, ...streams } = createDiskStreams(core, (tenant) => forTenant(tenant).blobs);
  counted.catch((error: unknown) => options.report("streams could not be counted", { why: String(error) }));

  return {
    forTenant,
    all: createDiskBlobs(core, nodeView, largeOf(core, partials, { view: nodeView, owner: undefined })),
    index,
    streams,
    recovered,
    upkeep: createDiskUpkeep(core, { janitor, partials, scrubber }),
    housekeeping,
    async close() {
      if (isClosed) return;
      isClosed = true;
      await scrubber.close();
      await housekeeping.close();
      await counted.catch(() => {}); // already reported
      await core.log.close();
      if (!core.log.lost) await checkpoints.close();
      await core.hashing.close();
      await core.checks.close();
      segments.close();
      lock.unlock();
    },
  };
}

/** Recounts live bytes of each segment; returns the store's size on disk. */
function countAll(holdings: Holdings, segments: Segments): number {
  let usedBytes = 0;
  holdings.accounts = {
    live: (segment, bytes) => segments.changeLive(segment, bytes),
    file: (bytes) => (usedBytes += bytes),
  };
  holdings.count();
  for (const { sizeBytes } of segments.all()) usedBytes += sizeBytes;
  return usedBytes;
}

function tenantStore(core: Core, partials: PartialUploads, tenant: string): TenantStore {
  const view = viewOf(core, tenant);
  return {
    blobs: createDiskBlobs(core, view, largeOf(core, partials, { view, owner: ownerOf(tenant, undefined) })),
    uploads: createDiskUploads(core, partials, tenant, view),
  };
}

/** A large blob written in one call is an upload under a unique key. */
const largeOf = (
  core: Core,
  partials: PartialUploads,
  whose: { readonly view: TenantView; readonly owner: UploadOwner | undefined },
): StoreLarge => ({
  async write(parts, source) {
    const name = `once-${randomUUID()}`;
    const upload = await openUpload(core, partials, { name, parts, ...whose, offset: 0, form: "plain" });
    try {
      for await (const part of source) await upload.append(part);
      await upload.finish();
    } catch (error) {
      await partials.abandon(name);
      await upload.suspend();
      throw error;
    }
  },
  adopt: (parts, path) => adoptFile(core, whose.view, parts, path),
});

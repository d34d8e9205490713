/**
 * A store on this machine's disk: small blobs and names in a packed log, large blobs in files, one table of all of it
 * in memory. docs/adr/0018 says why.
 *
 *   log/        segments of the packed log: the truth about everything here
 *   checkpoint  the table as it was, so that little of the log has to be read at a start
 *   files/      large blobs
 *   uploads/    what has come of uploads
 *   streams/    what running work says
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
import { createDiskBlobs, nodeView, viewOf, type TenantView, type WriteLarge } from "./disk-blobs.ts";
import { createDiskIndex } from "./table/disk-index.ts";
import { createDiskStreams } from "./streams/disk-streams.ts";
import { createDiskUpkeep } from "./janitor/disk-upkeep.ts";
import { openUpload } from "./upload/disk-upload.ts";
import { Holdings } from "./holdings.ts";
import { Housekeeping } from "./janitor/housekeeping.ts";
import { Janitor } from "./janitor/janitor.ts";
import { lockStore, type StoreLock } from "./lock.ts";
import { diskOptions, type DiskOptions } from "./options.ts";
import { ownerOf, PartialUploads } from "./upload/partials.ts";
import { suspectAfterReboot } from "./log/power-loss.ts";
import { recover, type Recovered } from "./log/recovery.ts";
import { Room } from "./janitor/room.ts";
import { Segments } from "./log/segments.ts";
import { createDiskUploads } from "./upload/uploads.ts";

export type DiskStore = Store & {
  /** The node's own view: everything is visible, and what is written through it is given to no tenant. */
  readonly all: BlobStore;
  readonly index: ActionIndex;
  readonly streams: Streams;
  readonly recovered: Recovered;
  readonly upkeep: Upkeep;
  /** What it does by itself in time. */
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

/** All of it would be lost with the names of these folders. */
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
  const room = new Room(options.sizeBytesMax, 2 * options.segmentBytes);
  room.takeOwn(countAll(holdings, segments));
  holdings.accounts = {
    live: (segment, bytes) => segments.changeLive(segment, bytes),
    file: (bytes) => (bytes > 0 ? room.takeOwn(bytes) : room.give(-bytes)),
  };
  const core = new Core({ root, options, clock, holdings, segments, room, recovered }, join(root, "files"));
  const partials = new PartialUploads(core);
  const janitor = new Janitor(core);
  core.makeRoom = async (bytes) => {
    await partials.reclaim(true);
    return room.fits(bytes) || (await janitor.makeRoom(bytes));
  };
  core.makeEntries = () => janitor.makeEntries();
  const checkpoints = new Checkpoints(core, recovered, suspects > 0);
  const housekeeping = new Housekeeping(core, { janitor, partials, checkpoints, lock });
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
    all: createDiskBlobs(core, nodeView, writerOf(core, partials, { view: nodeView, owner: undefined })),
    index,
    streams,
    recovered,
    upkeep: createDiskUpkeep(core, janitor, partials),
    housekeeping,
    async close() {
      if (isClosed) return;
      isClosed = true;
      await housekeeping.close();
      await counted.catch(() => {}); // it was told already
      await core.log.close();
      if (!core.log.lost) await checkpoints.close();
      await core.hashing.close();
      segments.close();
      lock.unlock();
    },
  };
}

/** How much of each segment is of use, and what all of it takes on the disk. */
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
    blobs: createDiskBlobs(core, view, writerOf(core, partials, { view, owner: ownerOf(tenant, undefined) })),
    uploads: createDiskUploads(core, partials, tenant, view),
  };
}

/** A large blob that comes in one go is an upload that nobody else knows of. */
const writerOf =
  (
    core: Core,
    partials: PartialUploads,
    whose: { readonly view: TenantView; readonly owner: UploadOwner | undefined },
  ): WriteLarge =>
  async (parts, source) => {
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
  };

/** A node's store, as configured: what the kernel pins and reads, and where doors keep bytes and names. */
import { randomUUID } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { Random } from "#base/random.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import { openDiskStore, type DiskStore } from "#blobs/disk/open.ts";
import { createMemoryIndex } from "#blobs/memory/memory-index.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import { OutputElsewhere } from "#blobs/output/output-elsewhere.ts";
import { withStreamQuota } from "#blobs/output/stream-quota.ts";
import type { StreamKey, Streams } from "#blobs/streams.ts";
import type { PinsOf } from "#shard/host/prepare.ts";
import { openSharedDirectory } from "#blobs/tiers/shared-directory.ts";
import { directorySegments } from "#blobs/tiers/streams/directory-segments.ts";
import { memorySegments } from "#blobs/tiers/streams/memory-segments.ts";
import { segmentStreams } from "#blobs/tiers/streams/segment-streams.ts";
import { uploadSharesDefault } from "#blobs/upload-limits.ts";
import type { Upkeep } from "#blobs/upkeep.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Config } from "#app/config/config.ts";
import type { DataFolder } from "#app/node/data-folder.ts";
import { BlobsConfig, type DiskConfig } from "#app/config/store-config.ts";
import type { TierConfig } from "#app/config/tier-config.ts";

export type ComposedStore = {
  /** The node's own blobs: artifacts of jobs and archived logs, of all tenants. */
  readonly blobs: BlobStore;
  readonly pins: PinsOf;
  readonly store: Store;
  readonly index: ActionIndex;
  /** Of the node's own disk; left out if there is none. */
  readonly upkeep?: Upkeep;
  /** Output of tasks. */
  readonly streams?: Streams;
  /** What tenants have of it on other nodes. */
  readonly outputElsewhere?: OutputElsewhere;
  /** Whether every node reads the same streams; otherwise they are those of tasks that run here. */
  readonly areStreamsShared?: boolean;
  /** Binds its metrics. */
  readonly observe?: (registry: MetricsRegistry) => void;
  close(): Promise<void>;
};

export type StorePorts = {
  readonly clock: Clock;
  readonly log: (line: string) => void;
  /** Called when the store's folder is gone: it refuses all writes then. */
  readonly onLost?: (folder: string) => void;
  /** Base URLs of other nodes, once they are known. */
  readonly peers?: () => readonly string[];
};

export async function openStore(config: Config, folder: DataFolder, ports: StorePorts): Promise<ComposedStore> {
  const opened = await openKind(config, folder, ports);
  const { clock, log } = ports;
  const tenantBytesMax = config.cluster.tenantOutputMax;
  const onCut = ({ tenant, task }: StreamKey): void =>
    log(`output of task ${task} is not kept any more: tenant ${tenant} is at its limit (cluster.tenantOutputMax)`);
  if (!opened.streams) return opened;
  const quota = { clock, tenantBytesMax, onCut, elsewhere: (tenant: string) => outputElsewhere.of(tenant) };
  const streams = withStreamQuota(opened.streams, quota);
  const outputElsewhere = new OutputElsewhere({ clock, tenantBytesMax, recent: () => streams.recent() });
  return { ...opened, streams, outputElsewhere };
}

async function openKind({ blobs }: Config, folder: DataFolder, ports: StorePorts): Promise<ComposedStore> {
  switch (blobs.kind) {
    case "disk": {
      const store = await openDisk(blobs, folder, ports);
      const { upkeep, index, streams } = store;
      const pins = pinsIn(store.all, (tenant) => store.forTenant(tenant).blobs);
      const disk = { blobs: store.all, pins, store, index, upkeep, streams, close: () => store.close() };
      return blobs.authoritative ? await overTier(disk, blobs.authoritative, ports) : disk;
    }
    case "directory": {
      // The folder is shared by nodes; what doors store is each node's own.
      const store = await openDisk(diskDefault, folder, ports);
      const shared = await openSharedDirectory(blobs.directory, ports.clock);
      // A tenant's uploads stay on this node's disk, so that no result can name them.
      const pins = pinsIn(shared, () => nothingThere);
      const { index, upkeep } = store;
      const segments = await directorySegments(blobs.directory);
      const streams = segmentStreams({ segments, clock: ports.clock, blobsOf: () => shared });
      const whole = { blobs: shared, pins, store, index, upkeep, streams, areStreamsShared: true };
      return { ...whole, close: () => store.close() };
    }
    case "memory": {
      const options = { clock: ports.clock, sizeBytesMax: blobs.sizeMax };
      const store = createMemoryStore(options);
      const own = createMemoryBlobs(options);
      const pins = pinsIn(own, (tenant) => store.forTenant(tenant).blobs);
      const segments = memorySegments(blobs.sizeMax / 4);
      const streams = segmentStreams({ segments, clock: ports.clock, blobsOf: () => own });
      return { blobs: own, pins, store, index: createMemoryIndex(), streams, close: () => store.close() };
    }
    default:
      return blobs satisfies never;
  }
}

const pinsIn =
  (any: Pins, ofTenant: (tenant: string) => Pins): PinsOf =>
  (tenant, whose) =>
    whose === "any" ? any : ofTenant(tenant);

type Pins = ReturnType<PinsOf>;

const nothingThere: Pins = { pin: async (digests) => ({ missing: digests }) };

/** Imported on demand: a single node does not load clients of other stores. */
async function overTier(
  disk: ComposedStore,
  tier: TierConfig,
  { clock, peers, log }: StorePorts,
): Promise<ComposedStore> {
  const { composeTiers } = await import("./tiers.ts");
  const random = new Random(randomUUID());
  return await composeTiers(disk, tier, { clock, random, env: process.env, log, ...(peers && { peers }) });
}

const diskDefault = BlobsConfig.parse({ kind: "disk" }) as DiskConfig;

async function openDisk(config: DiskConfig, folder: DataFolder, ports: StorePorts): Promise<DiskStore> {
  const { clock, log, onLost } = ports;
  const { directory, sizeMax, promised, highWatermark, lowWatermark, compression, sync, memory, uploads } = config;
  return await openDiskStore(directory ?? folder.blobs, {
    clock,
    sizeBytesMax: sizeMax,
    promisedMs: promised,
    highWatermark,
    lowWatermark,
    compression,
    sync,
    memoryBytesMax: memory,
    onLost: () => onLost?.(directory ?? folder.blobs),
    trustedMs: 2 * config.scrub.every,
    scrub: { everyMs: config.scrub.every, rate: config.scrub.rate },
    uploadKeptMs: config.uploadsKept,
    uploadIdleMs: uploads.idle,
    uploadShares: {
      ...uploadSharesDefault,
      all: uploads.share,
      tenant: uploads.sharePerTenant,
      caller: uploads.sharePerCaller,
      countTenant: uploads.countPerTenant,
      countCaller: uploads.countPerCaller,
    },
    report: (what, facts) =>
      log(
        `store: ${what} ${Object.entries(facts)
          .map(([name, value]) => `${name}=${value}`)
          .join(" ")}`.trimEnd(),
      ),
  });
}

/** Settings of the store. */
import { z } from "zod";
import { Duration, Size } from "#base/config-words.ts";
import { uploadSharesDefault } from "#blobs/upload-limits.ts";
import { TierConfig } from "./tier-config.ts";

const Share = z.number().min(0.1).max(1);

const { all, tenant, caller, countTenant, countCaller } = uploadSharesDefault;
const Count = z.int().min(1).max(1_000_000);

const UploadsConfig = z.strictObject({
  share: Share.default(all).describe(
    "The share of the store that unfinished uploads of all callers may hold together.",
  ),
  sharePerTenant: Share.default(tenant).describe(
    "The share that unfinished uploads of one tenant may hold. No blob can be larger.",
  ),
  sharePerCaller: Share.default(caller).describe("The share that unfinished uploads of one caller may hold."),
  countPerTenant: Count.default(countTenant).describe("How many unfinished uploads one tenant may have."),
  countPerCaller: Count.default(countCaller).describe("How many unfinished uploads one caller may have."),
  idle: Duration({ min: "10s" })
    .prefault("5m")
    .describe(
      "How long an upload may make no progress before it is dropped, while space is short or while its owner is at a " +
        "limit. Otherwise `uploadsKept` counts.",
    ),
});

const ScrubConfig = z.strictObject({
  every: Duration({ min: "1h" })
    .prefault("7d")
    .describe("How often the whole store is read. A large blob that was not read for twice this time is hashed first."),
  rate: Size({ min: "0" })
    .prefault("8MiB")
    .describe("How much is read in a second; 0: the store is never read as a whole."),
});

const Disk = z
  .strictObject({
    kind: z.literal("disk").describe("A folder on this machine's disk, for this node alone."),
    directory: z.string().min(1).optional().describe("Left out: `blobs` in the data folder."),
    sizeMax: Size({ min: "16MiB" })
      .prefault("64GiB")
      .describe(
        "A hard limit, or the size of the disk if that is less. The least recently used blobs are evicted first.",
      ),
    promised: Duration()
      .prefault("1h")
      .describe(
        "A blob that a client stored, or was told to be present, is kept this long, unless damaged. A store that is " +
          "full of such blobs refuses new ones: on a small disk, make this shorter.",
      ),
    highWatermark: Share.default(0.95).describe("The share of `sizeMax` above which blobs are evicted."),
    lowWatermark: Share.default(0.9).describe("The share down to which blobs are evicted."),
    compression: z
      .enum(["none", "zstd"])
      .default("none")
      .describe("How large blobs are stored. With zstd, clients that accept zstd get it unchanged; others cost more."),
    sync: z
      .enum(["written", "synced"])
      .default("written")
      .describe(
        "When a write is acknowledged: once it survives the end of the process, or once it survives a power failure. " +
          "Blobs that results of tasks name survive a power failure in any case.",
      ),
    memory: Size({ min: "4MiB", max: "4GiB" })
      .prefault("128MiB")
      .describe("For small blobs that are used often; the table of all blobs needs 64 to 100 bytes each in addition."),
    uploadsKept: Duration({ min: "1m" }).prefault("24h").describe("How long a broken upload can be resumed."),
    uploads: UploadsConfig.prefault({}).describe("What unfinished uploads may hold."),
    scrub: ScrubConfig.prefault({}).describe(
      "Damage is found while there may still be another copy: the whole store is read slowly, and what is damaged is " +
        "dropped. `millrace cache verify` does it at once.",
    ),
    authoritative: TierConfig.optional().describe(
      "An authoritative tier that all nodes reach, with the disk as its cache. Left out: the disk is authoritative.",
    ),
  })
  .refine(({ lowWatermark, highWatermark }) => lowWatermark < highWatermark, {
    path: ["lowWatermark"],
    message: "lowWatermark must be below highWatermark",
  });

export const BlobsConfig = z.discriminatedUnion("kind", [
  Disk,
  z.strictObject({
    kind: z.literal("directory").describe("A folder that several nodes share, such as a network disk."),
    directory: z.string().min(1).describe("The folder, reachable from all nodes. Nothing in it is ever removed."),
  }),
  z.strictObject({
    kind: z.literal("memory").describe("Nothing is stored: for trying things out."),
    sizeMax: Size().prefault("512MiB").describe("When it is full, the least recently used blobs are evicted first."),
  }),
]);

export type BlobsConfig = z.output<typeof BlobsConfig>;
export type DiskConfig = Extract<BlobsConfig, { kind: "disk" }>;

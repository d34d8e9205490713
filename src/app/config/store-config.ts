/** Where bytes are kept, as settings. */
import { z } from "zod";
import { Duration, Size } from "#base/config-words.ts";
import { uploadSharesDefault } from "#blobs/upload-limits.ts";
import { TierConfig } from "./tier-config.ts";

const Share = z.number().min(0.1).max(1);

const { all, tenant, caller, countTenant, countCaller } = uploadSharesDefault;
const Count = z.int().min(1).max(1_000_000);

const UploadsConfig = z.strictObject({
  share: Share.default(all).describe(
    "The share of the store that unfinished uploads of all callers may hold together. The rest is never theirs.",
  ),
  sharePerTenant: Share.default(tenant).describe("The share that those of one tenant may hold. No blob can be larger."),
  sharePerCaller: Share.default(caller).describe("The share that those of one caller may hold."),
  countPerTenant: Count.default(countTenant).describe("How many unfinished uploads one tenant may have."),
  countPerCaller: Count.default(countCaller).describe("How many one caller may have."),
  idle: Duration({ min: "10s" })
    .prefault("5m")
    .describe(
      "How long nothing may come of an upload before it is forgotten while room is short, or while its owner is at a " +
        "limit. Otherwise `uploadsKept` counts.",
    ),
});

const Disk = z
  .strictObject({
    kind: z.literal("disk").describe("A folder on this machine's disk, this node's alone."),
    directory: z.string().min(1).optional().describe("Left out: `blobs` in the data folder."),
    sizeMax: Size({ min: "16MiB" })
      .prefault("64GiB")
      .describe("A hard limit, or what the disk has if that is less. What was not used for the longest goes first."),
    promised: Duration()
      .prefault("1h")
      .describe(
        "What a client stored, or was told is there, is kept for so long, unless it is damaged. A store that is full " +
          "of such blobs refuses new ones: on a small disk, make this shorter.",
      ),
    highWatermark: Share.default(0.95).describe("The share of `sizeMax` above which things are let go of."),
    lowWatermark: Share.default(0.9).describe("The share down to which."),
    compression: z
      .enum(["none", "zstd"])
      .default("none")
      .describe("How bytes are kept. With zstd, clients that take zstd get it as it is; others cost more."),
    sync: z
      .enum(["written", "synced"])
      .default("written")
      .describe(
        "When a write is acknowledged: once it survives the end of the process, or once it survives a loss of power. " +
          "What results of tasks name survives that in any case.",
      ),
    memory: Size({ min: "4MiB", max: "4GiB" })
      .prefault("128MiB")
      .describe("For small blobs that are used often; the table of all blobs, 64 to 100 bytes each, comes on top."),
    uploadsKept: Duration({ min: "1m" })
      .prefault("24h")
      .describe("How long an upload that broke off can be gone on with."),
    uploads: UploadsConfig.prefault({}).describe("What uploads may take before they are finished."),
    authoritative: TierConfig.optional().describe(
      "A tier that all nodes reach and whose word counts; the disk is a cache over it then. Left out: the disk's does.",
    ),
  })
  .refine(({ lowWatermark, highWatermark }) => lowWatermark < highWatermark, {
    path: ["lowWatermark"],
    message: "lowWatermark has to be below highWatermark",
  });

export const BlobsConfig = z.discriminatedUnion("kind", [
  Disk,
  z.strictObject({
    kind: z.literal("directory").describe("A folder that several nodes share, such as a network disk."),
    directory: z.string().min(1).describe("The folder, reachable from all nodes. Nothing in it is ever let go of."),
  }),
  z.strictObject({
    kind: z.literal("memory").describe("Nothing is kept: for trying things out."),
    sizeMax: Size().prefault("512MiB").describe("When it is full, what nobody asked for the longest goes first."),
  }),
]);

export type BlobsConfig = z.output<typeof BlobsConfig>;
export type DiskConfig = Extract<BlobsConfig, { kind: "disk" }>;

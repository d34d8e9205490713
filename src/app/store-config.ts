/** Where bytes are kept, as settings. */
import { z } from "zod";
import { Duration, Size } from "#edge/config-words.ts";
import { TierConfig } from "./tier-config.ts";

const Share = z.number().min(0.1).max(1);

const Disk = z
  .strictObject({
    kind: z.literal("disk").describe("A folder on this machine's disk, this node's alone."),
    directory: z.string().min(1).optional().describe("Left out: `blobs` in the data folder."),
    sizeMax: Size({ min: "16MiB" })
      .prefault("64GiB")
      .describe("A hard limit, or what the disk has if that is less. What was not used for the longest goes first."),
    promised: Duration()
      .prefault("1h")
      .describe("What a client was told is there is not let go of before, unless it is damaged."),
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

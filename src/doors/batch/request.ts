/** A query as it is submitted: the document of a job of this door. */
import { z } from "zod";
import { cutDefaults } from "./plan/settings.ts";

const Bytes = z.int().min(1).max(Number.MAX_SAFE_INTEGER);

const Output = z.strictObject({
  folder: z.string().min(1).max(4_096).describe("Where the result goes, as a folder of Parquet files."),
  partitionBy: z
    .array(z.string().min(1).max(200))
    .max(16)
    .default([])
    .describe("Files are kept apart by the values of these columns."),
});

const mapsMax = 20;
const Column = z.strictObject({
  name: z.string().min(1).max(200),
  type: z
    .string()
    .regex(/^[A-Za-z0-9_ ,()[\]"]{1,500}$/)
    .describe("A type of DuckDB, such as BIGINT or VARCHAR[]."),
});

export const MapDocument = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/)
    .describe("The table under which queries read what it returns."),
  sql: z.string().min(1).max(50_000).describe("The SELECT whose rows it gets. It may read functions before it."),
  module: z
    .string()
    .regex(/^[0-9a-f]{64}\/\d{1,9}$/)
    .describe("The blob with its code: one JavaScript module, or one Python file."),
  language: z.enum(["javascript", "python"]).default("javascript"),
  export: z
    .string()
    .regex(/^[A-Za-z_$][\w$]{0,100}$/)
    .default("default")
    .describe("The function's name in the module."),
  params: z.json().default(null).describe("Given to each call."),
  schema: z.array(Column).min(1).max(1_000).describe("The columns that it returns."),
  batchRows: z.int().min(1).max(1_000_000).default(8_192).describe("How many rows it gets at once, at most."),
  batchMs: z.int().min(1).max(3_600_000).default(60_000).describe("How long one call may take."),
  skip: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(0)
    .describe("How many rows of one task may be left out because it fails on them."),
  deterministic: z.boolean().default(true).describe("Whether its results may be used again for the same rows."),
});
export type MapDocument = z.output<typeof MapDocument>;

export const BatchDocument = z.strictObject({
  sql: z.string().min(1).max(50_000).describe("One SELECT."),
  folder: z.string().max(4_096).default("/").describe("Where names of files begin that are not absolute."),
  maps: z.array(MapDocument).max(mapsMax).default([]).describe("Functions over batches of rows."),
  granted: z
    .boolean()
    .default(false)
    .describe("Read and write only what is granted to the tenant, as jobs of callers who are no operators always do."),
  explain: z.boolean().default(false).describe("Only plan it."),
  fresh: z.boolean().default(false).describe("Compute all of it, whatever was computed before."),
  output: Output.optional().describe("Written by the node, all of it or nothing. Left out: the result is only kept."),
  splitBytes: Bytes.default(cutDefaults.splitBytes).describe("Files are read in pieces of about this size."),
  broadcastBytes: Bytes.default(cutDefaults.broadcastBytes).describe("Smaller sides of joins go to every task whole."),
  reduceBytes: Bytes.default(cutDefaults.reduceBytes).describe("How much of what was written one task reads."),
  partitions: z.int().min(0).max(64).default(0).describe("How many partitions rows are hashed into; 0: by size."),
});
export type BatchDocument = z.output<typeof BatchDocument>;

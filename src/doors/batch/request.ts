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

export const BatchDocument = z.strictObject({
  sql: z.string().min(1).max(50_000).describe("One SELECT."),
  folder: z.string().max(4_096).default("/").describe("Where names of files begin that are not absolute."),
  explain: z.boolean().default(false).describe("Only plan it."),
  fresh: z.boolean().default(false).describe("Compute all of it, whatever was computed before."),
  output: Output.optional().describe("Written by the node, all of it or nothing. Left out: the result is only kept."),
  splitBytes: Bytes.default(cutDefaults.splitBytes).describe("Files are read in pieces of about this size."),
  broadcastBytes: Bytes.default(cutDefaults.broadcastBytes).describe("Smaller sides of joins go to every task whole."),
  reduceBytes: Bytes.default(cutDefaults.reduceBytes).describe("How much of what was written one task reads."),
  partitions: z.int().min(0).max(64).default(0).describe("How many partitions rows are hashed into; 0: by size."),
});
export type BatchDocument = z.output<typeof BatchDocument>;

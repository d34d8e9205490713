/** The door's calls under /v1/batch: what may be asked, and the shape of the answers. */
import { z } from "zod";
import { endpoint, json } from "#http/endpoint.ts";

const Stage = z.object({
  wave: z.int(),
  about: z.string(),
  id: z.string().describe("A digest of what the stage computes."),
  tasks: z.int(),
  rows: z.int(),
  bytes: z.int(),
  cpuMs: z.number(),
  reused: z.int().describe("Tasks whose result was there already."),
  skipped: z.int().describe("Rows that functions failed on and that were left out."),
  why: z.array(z.string()).describe("Why the others were computed, each reason once."),
  planned: z.int().describe("Tasks that have been planned; `tasks` of them have ended."),
  running: z.int(),
  again: z.int().describe("Attempts beyond the first one of each task."),
  twice: z.int().describe("Tasks that a second attempt runs at now, because the first takes too long."),
  spilled: z.int().describe("Bytes that did not fit into memory."),
  taskMs: z.int().optional().describe("How long its tasks take, on average."),
  leftMs: z
    .int()
    .optional()
    .describe("How long until its tasks have ended, if the others take as long; left out while nothing is known."),
  skew: z.number().describe("Rows of the largest task, as a multiple of the mean."),
});

export const QueryView = z.object({
  job: z.string(),
  name: z.string(),
  phase: z.string(),
  ended: z.boolean(),
  tasks: z.int(),
  done: z.int(),
  submittedAt: z.iso.datetime(),
  endedAt: z.iso.datetime().optional(),
  foreseen: z.int().optional().describe("How many stages there will be, as far as the sources tell."),
  plan: z.string().optional().describe("The digest of the plan, once there is one."),
  stages: z.array(Stage),
  result: z.array(z.string()).optional().describe("Digests of the Parquet files of the result, in order."),
  written: z
    .object({ folder: z.string(), version: z.string(), files: z.int(), rows: z.int() })
    .optional()
    .describe("Where the node has written the result to."),
  failure: z.string().optional(),
});
export type QueryView = z.output<typeof QueryView>;

export const showQuery = endpoint({
  method: "GET",
  path: "/v1/batch/queries/{job}",
  action: "work.read",
  about: "Shows a query: its stages so far and, once it has ended, its result or why there is none.",
  params: z.object({ job: z.string().max(50).describe("The job's id, such as j0-1.") }),
  answer: json(QueryView),
});

export const batchEndpoints = [showQuery] as const;

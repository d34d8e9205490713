/** What tenants use, under /v1/usage. */
import { z } from "zod";
import { endpoint, json } from "#http/endpoint.ts";

export const usageDaysMax = 92;

const Item = z.object({
  tenant: z.string(),
  door: z.string(),
  repository: z.string().optional().describe("By repository: whose runs it was; absent: of none."),
  pool: z.string().optional().describe("By pool: whose machines ran it; absent: nodes and workers of no pool."),
  slotSeconds: z.number().describe("For how long attempts held a slot."),
  cpuSeconds: z
    .number()
    .describe("Processor time of attempts that left a result, of doors that measure it; 0 of others."),
  tasks: z.int().describe("Tasks that ended with a result."),
  attempts: z.int(),
  outputBytes: z.number().describe("Bytes of the blobs that results name; equal blobs count each time."),
  keptBytes: z.number().describe("Bytes that are kept under names now, whatever the days."),
  keptNames: z.int(),
  cost: z.number().optional().describe("Of machines of pools that have a price, for the time that they ran work."),
});

export const showUsage = endpoint({
  method: "GET",
  path: "/v1/usage",
  action: "work.read",
  about:
    "Adds up what the tenant used, by door, repository or pool; for operators that name no tenant: of every tenant.",
  query: z.object({
    by: z.enum(["door", "repository", "pool"]).default("door"),
    from: z.iso.date().optional().describe("The first day (UTC); left out: the first of this month."),
    to: z.iso.date().optional().describe(`The last day; left out: today. At most ${usageDaysMax} days.`),
  }),
  answer: json(z.object({ from: z.string(), to: z.string(), items: z.array(Item) })),
});

export const usageEndpoints = [showUsage] as const;

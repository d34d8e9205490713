/** The audit trail under /v1/audit: who changed what, when and from where. */
import { z } from "zod";
import { pageFields, pageOf } from "#http/cursor.ts";
import { endpoint, json, lines } from "#http/endpoint.ts";

const Entry = z.object({
  seq: z.int().describe("1, 2, 3 ... in each trail."),
  at: z.string(),
  who: z.object({ name: z.string(), tenant: z.string(), proof: z.string(), address: z.string() }),
  action: z.string().describe("The row of the policy table."),
  call: z.string(),
  of: z.record(z.string(), z.string()).describe("What the call named in its path and query; never its body."),
  outcome: z.enum(["asked", "failed"]).describe("Written before the change is made; failed: it was not made."),
  why: z.string().optional(),
  prev: z.string().describe("The hash of the entry before."),
  hash: z.string(),
});

const trail = z
  .enum(["tenant", "cluster"])
  .default("tenant")
  .describe("The tenant's trail, or the one of what concerns the whole cluster, which operators read.");

export const listAudit = endpoint({
  method: "GET",
  path: "/v1/audit",
  action: "audit.read",
  about: "Lists the audit trail, newest first.",
  query: z.object({ ...pageFields, trail }),
  answer: json(pageOf(Entry)),
});

export const exportAudit = endpoint({
  method: "GET",
  path: "/v1/audit/export",
  action: "audit.read",
  about: "The whole audit trail, oldest first, one entry a line: `millrace audit verify` checks its chain of hashes.",
  query: z.object({ trail }),
  answer: lines(Entry),
});

export const auditEndpoints = [listAudit, exportAudit] as const;

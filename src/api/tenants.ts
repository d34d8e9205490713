/** Tenants under /v1/tenants: their share of the cluster. */
import { z } from "zod";
import { endpoint, json, jsonBody } from "#http/endpoint.ts";

const Standing = z.strictObject({
  weight: z.int().min(1).default(1).describe("Its share next to other tenants'."),
  runningMax: z.int().min(0).default(0).describe("Tasks that may run at once, over all shards; 0: no limit."),
  queuedMax: z.int().min(0).default(0).describe("Tasks that may wait at once, in each shard; 0: cluster.queuedMax."),
});

export const setTenant = endpoint({
  method: "PUT",
  path: "/v1/tenants/{name}",
  action: "work.admin",
  about: "Sets a tenant's share of the cluster, and how much of it may run and wait at once.",
  params: z.object({ name: z.string().min(1).max(200) }),
  body: jsonBody(Standing),
  answer: json(z.object({ tenant: z.string(), ...Standing.shape })),
});

export const tenantEndpoints = [setTenant] as const;

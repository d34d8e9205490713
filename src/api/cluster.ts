/** The cluster under /v1/cluster: its nodes, shards and executors, for operators and viewers. */
import { z } from "zod";
import { endpoint, json, jsonBody } from "#http/endpoint.ts";

export const ClusterNode = z.object({
  node: z.string(),
  address: z.string(),
  state: z.string(),
  alive: z.boolean(),
  seenAgoMs: z.number(),
  facts: z.record(z.string(), z.union([z.string(), z.number()])).describe("Version, slots, running tasks, sandbox."),
});

export const ClusterShard = z.object({
  shard: z.int(),
  owner: z.string().optional().describe("Absent while no node has a valid lease."),
  epoch: z.int(),
  leaseMs: z.number(),
  isolatedOn: z.string().optional().describe("The node that is kept for this shard."),
  isolatedFor: z.string().optional().describe("The tenant whose work it mostly has, if that is why."),
});

const IsolatedTenant = z.object({
  tenant: z.string(),
  node: z.string().describe("The node that is kept for it."),
  by: z.enum(["hand", "rule"]),
  shards: z.array(z.int()).describe("Those that were found to be mostly its work."),
});

export const showCluster = endpoint({
  method: "GET",
  path: "/v1/cluster",
  action: "cluster.read",
  about: "Shows the nodes of the cluster and who owns which shard.",
  answer: json(
    z.object({
      cluster: z.string(),
      node: z.string().describe("The node that answers."),
      featureLevel: z.int().describe("What the cluster may write: the lowest level that all of its nodes can read."),
      nodes: z.array(ClusterNode),
      shards: z.array(ClusterShard),
      isolatedTenants: z.array(IsolatedTenant).optional().describe("Tenants that have a node of their own."),
    }),
  ),
});

const HeldShard = z.object({
  shard: z.int(),
  phase: z.string().describe("loading: its log is being read. trouble: it could not be served."),
  epoch: z.int(),
  trouble: z.string().optional(),
  jobs: z.int(),
  claims: z.int(),
  load: z
    .object({ commandsPerS: z.number(), eventsPerS: z.number(), loopShare: z.number() })
    .optional()
    .describe("In the last seconds; loopShare is its part of the node's time, from 0 to 1."),
  ready: z
    .array(z.object({ requires: z.array(z.string()), tasks: z.int() }))
    .describe("Tasks that wait, by what they require of an executor."),
});

export const showNode = endpoint({
  method: "GET",
  path: "/v1/node",
  action: "cluster.read",
  about: "Shows what the node that answers holds: its shards, and the memory that their work takes.",
  answer: json(
    z.object({
      node: z.string(),
      address: z.string(),
      state: z.string(),
      memory: z.object({ workBytes: z.number(), workBytesMax: z.number() }).optional(),
      shards: z.array(HeldShard),
    }),
  ),
});

const shardParams = z.object({ shard: z.string().regex(/^\d{1,4}$/, "must be the number of a shard") });
const isolationPath = "/v1/cluster/isolation/{shard}";

export const isolateShard = endpoint({
  method: "PUT",
  path: isolationPath,
  action: "cluster.admin",
  about: "Keeps a node for one shard: it keeps or gets that shard, and its other shards go to other nodes.",
  params: shardParams,
  body: jsonBody(
    z.strictObject({
      node: z.string().min(1).max(256).optional().describe("Left out: the node that owns the shard now."),
    }),
  ),
  answer: json(z.object({ shard: z.int(), node: z.string() })),
});

export const releaseShard = endpoint({
  method: "DELETE",
  path: isolationPath,
  action: "cluster.admin",
  about: "Keeps no node for the shard any more: shards are spread evenly again.",
  params: shardParams,
  answer: json(z.object({ shard: z.int(), released: z.boolean() })),
});

const tenantParams = z.object({ tenant: z.string().min(1).max(200) });
const tenantPath = "/v1/cluster/isolation/tenants/{tenant}";

export const isolateTenant = endpoint({
  method: "PUT",
  path: tenantPath,
  action: "cluster.admin",
  about: "Keeps a node for one tenant: shards that are mostly its work move there, and all others leave that node.",
  params: tenantParams,
  body: jsonBody(z.strictObject({ node: z.string().min(1).max(256) })),
  answer: json(IsolatedTenant),
});

export const releaseTenant = endpoint({
  method: "DELETE",
  path: tenantPath,
  action: "cluster.admin",
  about: "Keeps no node for the tenant any more: its shards are placed like all others.",
  params: tenantParams,
  answer: json(z.object({ tenant: z.string(), released: z.boolean() })),
});

export const clusterEndpoints = [
  showCluster,
  showNode,
  isolateShard,
  releaseShard,
  isolateTenant,
  releaseTenant,
] as const;

/** The cluster under /v1/cluster: its nodes, shards and executors, for operators and viewers. */
import { z } from "zod";
import { endpoint, json } from "#http/endpoint.ts";

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
      nodes: z.array(ClusterNode),
      shards: z.array(ClusterShard),
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

export const clusterEndpoints = [showCluster, showNode] as const;

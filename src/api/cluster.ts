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
  owner: z.string().optional().describe("Absent while nobody's lease is good."),
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

export const clusterEndpoints = [showCluster] as const;

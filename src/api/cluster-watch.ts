/** The cluster, live. */
import { endpoint, events } from "#http/endpoint.ts";
import { showCluster } from "./cluster.ts";

export const watchCluster = endpoint({
  method: "GET",
  path: "/v1/cluster/watch",
  action: "cluster.read",
  about: "Sends the nodes and shards of the cluster whenever they change. Ages and leases are in steps of 5 s.",
  answer: events(showCluster.answer.schema),
});

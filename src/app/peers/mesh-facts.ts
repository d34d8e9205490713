/** This node's current tags for the mesh. */
import { isLoopbackHost } from "#edge/identity/loopback.ts";
import type { Node } from "#shard/node.ts";
import type { Config } from "#app/config/config.ts";
import { parseEdgeAddress } from "#app/config/edge-config.ts";
import { siteOf } from "./site.ts";
import type { NodeFacts } from "./mesh-tags.ts";
import { version } from "#app/version.ts";

export type FactSources = {
  readonly node: Pick<Node, "status" | "address">;
  readonly worker: () => { readonly slots: number; readonly running: number } | undefined;
  /** The sandbox of actions; undefined if none are run. */
  readonly sandbox: string | undefined;
  /** Where the edge listens; undefined if it does not. */
  readonly edgeAddress: string | undefined;
};

/** By the host at which other members reach this node. */
export const factsFor =
  (config: Pick<Config, "cluster" | "node">, { node, worker, sandbox, edgeAddress }: FactSources) =>
  (host: string): NodeFacts => ({
    cluster: config.cluster.name,
    version,
    state: node.status().state,
    edge: edgeAddress === undefined ? undefined : reachable(edgeAddress, host),
    work: node.address.startsWith("tcp:") ? node.address : undefined,
    running: worker()?.running ?? 0,
    slots: worker()?.slots ?? 0,
    sandbox,
    ...siteOf(config),
  });

/** An edge on all addresses is reached at the mesh's address; one on loopback only is useless to other machines. */
function reachable(edgeAddress: string, host: string): string | undefined {
  const { host: bound, port } = parseEdgeAddress(edgeAddress);
  if (bound === "0.0.0.0" || bound === "::") return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  return isLoopbackHost(bound) && !isLoopbackHost(host) ? undefined : edgeAddress;
}

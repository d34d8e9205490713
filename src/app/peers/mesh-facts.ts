/** What this node would say of itself to the mesh right now. */
import { isLoopbackHost } from "#edge/identity/loopback.ts";
import type { Node } from "#shard/node.ts";
import type { Config } from "#app/config/config.ts";
import { parseEdgeAddress } from "#app/config/edge-config.ts";
import type { NodeFacts } from "./mesh-tags.ts";
import { version } from "#app/version.ts";

export type FactSources = {
  readonly node: Pick<Node, "status" | "address">;
  readonly worker: () => { readonly slots: number; readonly running: number } | undefined;
  /** What actions run in; undefined where none are run. */
  readonly sandbox: string | undefined;
  /** Where the edge listens; undefined when it does not. */
  readonly edgeAddress: string | undefined;
};

/** By the host at which the other members reach this node. */
export const factsFor =
  ({ cluster }: Pick<Config, "cluster">, { node, worker, sandbox, edgeAddress }: FactSources) =>
  (host: string): NodeFacts => ({
    cluster: cluster.name,
    version,
    state: node.status().state,
    edge: edgeAddress === undefined ? undefined : reachable(edgeAddress, host),
    work: node.address.startsWith("tcp:") ? node.address : undefined,
    running: worker()?.running ?? 0,
    slots: worker()?.slots ?? 0,
    sandbox,
  });

/** One that listens everywhere is reached where the mesh is; one on loopback only is no use to others elsewhere. */
function reachable(edgeAddress: string, host: string): string | undefined {
  const { host: bound, port } = parseEdgeAddress(edgeAddress);
  if (bound === "0.0.0.0" || bound === "::") return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  return isLoopbackHost(bound) && !isLoopbackHost(host) ? undefined : edgeAddress;
}

/** Whether a node may be one of several: the results of one must be available to the others. Pure. */
import { Fault } from "#base/fault.ts";
import type { NodeSeen } from "#journal/journal.ts";
import type { Config } from "./config.ts";

/** Fault "invalid" says what to configure. A mesh that joins no other member is allowed. */
export function checkJoin(config: Pick<Config, "mesh" | "journal" | "blobs">): void {
  const why = config.mesh && config.mesh.join.length > 0 ? whyNotJoin(config) : undefined;
  if (why !== undefined) throw new Fault("invalid", "join a mesh", { why });
}

/**
 * Nodes that share a journal are one cluster, with or without a mesh. A node with private data must be the only one
 * there: returns why, or undefined if others may join.
 */
export function whyAlone(config: Pick<Config, "journal" | "blobs" | "node" | "cluster">): string | undefined {
  return config.journal.kind === "postgres" ? (whyNotJoin(config) ?? whyNotCalled(config)) : undefined;
}

/**
 * Without a shared secret, a node's TCP port is for the owner of its data folder only, so other nodes cannot call it.
 */
function whyNotCalled({ node, cluster }: Pick<Config, "node" | "cluster">): string | undefined {
  const [advertised = ""] = node.listen;
  if (cluster.secretFile !== undefined || !advertised.startsWith("tcp:")) return undefined;
  return `other nodes could not call it at ${advertised}: set cluster.secretFile, the same on every node, or listen on "unix" first`;
}

/** Fault "invalid" if another node is there already. A node that is leaving does not count. */
export function checkAlone(why: string, name: string, nodes: readonly NodeSeen[]): void {
  const other = nodes.find(({ node, alive, state }) => node !== name && alive && state === "up");
  if (other) throw new Fault("invalid", "join cluster", { node: other.node, why });
}

function whyNotJoin({ journal, blobs }: Pick<Config, "journal" | "blobs">): string | undefined {
  if (journal.kind !== "postgres")
    return (
      `a journal of kind ${journal.kind} belongs to this node alone, and so would its work: nodes that join each other ` +
      "share one. Set journal: { kind: postgres, url: ... }"
    );
  if (blobs.kind === "directory") return undefined;
  if (blobs.kind === "memory" || !blobs.authoritative)
    return (
      "blobs of this node would not be available to the others: set blobs.authoritative to a tier that all of them " +
      "reach (a bucket, a shared folder, another server), the same on every node"
    );
  if (blobs.authoritative.names.kind === "here")
    return (
      "each node would keep names of results by itself, and the others would not find them: set " +
      "blobs.authoritative.names to { kind: postgres, url: ... }, the same on every node"
    );
  return undefined;
}

/** Whether a node may be one of several: what one has made must not be lost to the others. Pure. */
import { Fault } from "#base/fault.ts";
import type { NodeSeen } from "#journal/journal.ts";
import type { Config } from "./config.ts";

/** Fault "invalid" says what to configure. A mesh that joins nobody is a node's own affair. */
export function checkJoin(config: Pick<Config, "mesh" | "journal" | "blobs">): void {
  const why = config.mesh && config.mesh.join.length > 0 ? whyNotJoin(config) : undefined;
  if (why !== undefined) throw new Fault("invalid", "join a mesh", { why });
}

/**
 * Nodes that share a journal are one cluster, with a mesh or without. A node that keeps things to itself may be the
 * only one there: why it must stay so, or undefined where others may come.
 */
export function whyAlone(config: Pick<Config, "journal" | "blobs" | "node" | "cluster">): string | undefined {
  return config.journal.kind === "postgres" ? (whyNotJoin(config) ?? whyNotCalled(config)) : undefined;
}

/** Without a secret that they share, a node's TCP is for the owner of its data folder, and other nodes are not that. */
function whyNotCalled({ node, cluster }: Pick<Config, "node" | "cluster">): string | undefined {
  const [told = ""] = node.listen;
  if (cluster.secretFile !== undefined || !told.startsWith("tcp:")) return undefined;
  return `other nodes could not call it at ${told}: set cluster.secretFile, the same on every node, or listen on "unix" first`;
}

/** Fault "invalid" where somebody else is there already. One that is leaving is no company. */
export function checkAlone(why: string, name: string, nodes: readonly NodeSeen[]): void {
  const other = nodes.find(({ node, alive, state }) => node !== name && alive && state === "up");
  if (other) throw new Fault("invalid", "join cluster", { node: other.node, why });
}

function whyNotJoin({ journal, blobs }: Pick<Config, "journal" | "blobs">): string | undefined {
  if (journal.kind !== "postgres")
    return (
      `a journal of kind ${journal.kind} is this node's alone, and so would be its work: nodes that join each other ` +
      "share one. Set journal: { kind: postgres, url: ... }"
    );
  if (blobs.kind === "directory") return undefined;
  if (blobs.kind === "memory" || !blobs.authoritative)
    return (
      "what this node stores would be lost to the others with it: set blobs.authoritative to a tier that all of them " +
      "reach (a bucket, a shared folder, another server), the same on every node"
    );
  if (blobs.authoritative.names.kind === "here")
    return (
      "results would be named on each node by itself, and the others would not find them: set " +
      "blobs.authoritative.names to { kind: postgres, url: ... }, the same on every node"
    );
  return undefined;
}

/** A node's tags in the mesh, and what is read from others' tags: small, and never authoritative. */
import type { MemberView } from "#mesh/machine/core.ts";
import type { Tags } from "#mesh/tags.ts";

export type NodeFacts = {
  readonly cluster: string;
  readonly version: string;
  readonly state: string;
  /** The edge's address for others; undefined if there is none. */
  readonly edge: string | undefined;
  /** The address of this node's shards for other nodes; undefined if it is reachable from this machine only. */
  readonly work: string | undefined;
  readonly running: number;
  readonly slots: number;
  /** The sandbox of actions; undefined if none are run. */
  readonly sandbox: string | undefined;
  readonly region?: string | undefined;
  readonly rack?: string | undefined;
};

export const roleOfNodes = "millrace";

/** Empty tags are left out, and long texts are truncated: everything must fit into 512 bytes. */
export function tagsOf({ running, slots, ...facts }: NodeFacts): Tags {
  const { cluster, version, state, edge, work, sandbox, region, rack } = facts;
  const load = `${running}/${slots}`;
  const tags = { role: roleOfNodes, cluster, version, state, edge, work, load, sandbox, region, rack };
  return Object.fromEntries(
    Object.entries(tags).flatMap(([name, value]) => (value === undefined ? [] : [[name, value.slice(0, 60)]])),
  );
}

/** A member as `/peers` and `millrace peers` show it. */
export type PeerView = {
  readonly name: string;
  readonly self: boolean;
  /** alive, suspect, dead (failed) or left. */
  readonly state: MemberView["state"];
  readonly sinceMs: number;
  readonly address: string;
  /** A node of ours, or another member such as a serf agent. */
  readonly kind: "millrace" | "other";
  readonly load?: { readonly running: number; readonly slots: number } | undefined;
  readonly tags: Tags;
  readonly incarnation: number;
};

export function peerOf(member: MemberView): PeerView {
  const { name, isSelf, state, sinceMs, address, tags, incarnation } = member;
  const isOurs = tags["role"] === roleOfNodes;
  const load = isOurs ? loadIn(tags["load"]) : undefined;
  return {
    name,
    self: isSelf,
    state,
    sinceMs,
    address: address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`,
    kind: isOurs ? "millrace" : "other",
    ...(load && { load }),
    tags,
    incarnation,
  };
}

function loadIn(text: string | undefined): PeerView["load"] {
  const match = /^(\d{1,6})\/(\d{1,6})$/.exec(text ?? "");
  return match ? { running: Number(match[1]), slots: Number(match[2]) } : undefined;
}

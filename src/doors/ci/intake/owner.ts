/**
 * Which node looks after something: all nodes find the same one, and another when it is gone. While they disagree two
 * may look after it, so what they do must be safe twice.
 */
import { createHash } from "node:crypto";
import type { Peers } from "#door/ports.ts";

export const ownerAmong = (nodes: readonly string[], key: string): string | undefined =>
  nodes
    .map((node) => ({ node, rank: createHash("sha256").update(`${node}\0${key}`).digest("hex") }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .at(0)?.node;

export const ownsOn =
  (peers: Pick<Peers, "nodes">, self: string) =>
  (key: string): boolean => {
    const alive = peers.nodes().filter((peer) => peer.alive && peer.node !== self);
    return ownerAmong([self, ...alive.map(({ node }) => node)], key) === self;
  };

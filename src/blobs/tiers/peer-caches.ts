/**
 * Reads blobs from other nodes' disks before the tier is asked. The mesh lists the nodes and may be out of date. Which
 * node has a blob is not known, so a few are asked: first those that had blobs recently, because one build's blobs are
 * often on one node, then in an order that depends on the blob, so that requests spread over the nodes.
 */
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { hashHex, partsOf } from "#blobs/hashing.ts";
import { httpCache, type ReadOnly } from "./http.ts";
import type { HttpCaller } from "./s3/http-call.ts";

export type PeerCachesOptions = {
  readonly caller: HttpCaller;
  /** Base URLs of the nodes that are there now. */
  readonly urls: () => readonly string[];
  readonly token?: string;
  /** Smaller blobs come from the tier just as fast. */
  readonly sizeBytesMin: number;
  /** How many nodes are asked for one blob. */
  readonly askedMax?: number;
  /** Called when a blob was read from another node, complete and verified. */
  readonly served?: () => void;
};

type Peer = ReadOnly & { readonly url: string; servedCount: number };

/** After so many blobs served, all counts are halved: recent ones matter more. */
const fadeEvery = 64;

export function peerCaches(options: PeerCachesOptions): (digest: Digest) => readonly ReadOnly[] {
  const { urls, sizeBytesMin, askedMax = 3 } = options;
  const known = new Map<string, Peer>();
  let servedSinceFade = 0;

  const had = (peer: Peer): void => {
    peer.servedCount += 1;
    servedSinceFade += 1;
    options.served?.();
    if (servedSinceFade < fadeEvery) return;
    servedSinceFade = 0;
    for (const one of known.values()) one.servedCount /= 2;
  };

  const present = (): readonly Peer[] => {
    const now = new Set(urls());
    for (const url of known.keys()) if (!now.has(url)) known.delete(url);
    for (const url of now) if (!known.has(url)) known.set(url, peerAt(url, options, had));
    return [...known.values()];
  };

  return (digest) => {
    if (digestSizeBytes(digest) < sizeBytesMin) return [];
    const { hash } = partsOf(digest);
    const rank = new Map(present().map((peer) => [peer, hashHex("sha256", Buffer.from(`${hash} ${peer.url}`))]));
    const isBefore = (a: Peer, b: Peer): number =>
      b.servedCount - a.servedCount || ((rank.get(a) ?? "") < (rank.get(b) ?? "") ? -1 : 1);
    return [...rank.keys()].toSorted(isBefore).slice(0, askedMax);
  };
}

function peerAt(url: string, { caller, token }: PeerCachesOptions, had: (peer: Peer) => void): Peer {
  const cache = httpCache({ caller, url, isPeer: true, ...(token !== undefined && { token }) });
  const peer: Peer = {
    url,
    servedCount: 0,
    async *read(digest, range) {
      yield* cache.read(digest, range);
      had(peer);
    },
  };
  return peer;
}

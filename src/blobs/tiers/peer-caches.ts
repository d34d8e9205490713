/**
 * Other nodes' disks as short cuts on the way to the tier. Who is there comes from the mesh and may be wrong by now;
 * who has a blob nobody knows, so a few are asked: first those that had something lately, for what one build needs is
 * often in one place, then in an order of the blob's own, so that not everybody asks the same node.
 */
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { hashHex, partsOf } from "#blobs/hashing.ts";
import { httpCache, type ReadOnly } from "./http.ts";
import type { HttpCaller } from "./s3/http-call.ts";

export type PeerCachesOptions = {
  readonly caller: HttpCaller;
  /** Where they are now, as beginnings of addresses. */
  readonly urls: () => readonly string[];
  readonly token?: string;
  /** Smaller ones come from the tier as quickly. */
  readonly sizeBytesMin: number;
  /** Nodes that are asked for one blob. */
  readonly askedMax?: number;
  /** A blob came from another node, whole and right. */
  readonly served?: () => void;
};

type Peer = ReadOnly & { readonly url: string; servedCount: number };

/** What served so long ago counts half: another build has begun meanwhile. */
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

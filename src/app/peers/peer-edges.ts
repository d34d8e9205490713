/** The edges of other nodes of this cluster, as the mesh shows them: a hint. */
import type { PeersView } from "#app/compose/mesh.ts";
import type { PeerView } from "./mesh-tags.ts";

/**
 * A node uses TLS if this one does: they are configured alike. Where nodes of this region are alive, only they are
 * asked: behind them is the tier that all of them share.
 */
export function peerEdges(
  view: PeersView | undefined,
  cluster: string,
  isTls: boolean,
  region?: string,
): readonly string[] {
  const scheme = isTls ? "https" : "http";
  const isNear = ({ self, state, tags }: PeerView): boolean => !self && state === "alive" && tags["region"] === region;
  const peers = view?.peers ?? [];
  const near = region === undefined ? [] : peers.filter(isNear);
  return (near.length > 0 ? near : peers).flatMap(({ kind, self, state, tags }) => {
    const isOther = kind === "millrace" && !self && state === "alive" && tags["cluster"] === cluster;
    const address = isOther ? tags["edge"] : undefined;
    return address !== undefined && URL.canParse(`${scheme}://${address}/`) ? [`${scheme}://${address}/`] : [];
  });
}

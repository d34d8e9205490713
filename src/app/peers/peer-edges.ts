/** The edges of other nodes of this cluster, as the mesh shows them: a hint. */
import type { PeersView } from "#app/compose/mesh.ts";

/** A node uses TLS if this one does: they are configured alike. */
export function peerEdges(view: PeersView | undefined, cluster: string, isTls: boolean): readonly string[] {
  const scheme = isTls ? "https" : "http";
  return (view?.peers ?? []).flatMap(({ kind, self, state, tags }) => {
    const isOther = kind === "millrace" && !self && state === "alive" && tags["cluster"] === cluster;
    const address = isOther ? tags["edge"] : undefined;
    return address !== undefined && URL.canParse(`${scheme}://${address}/`) ? [`${scheme}://${address}/`] : [];
  });
}

/** GET /peers: the members of the mesh, as this node sees them. */
import type { Admission } from "#edge/port/admission.ts";
import type { Peer } from "#edge/port/port.ts";
import { problem, refused } from "#edge/problem.ts";
import type { ServeElsewhere } from "#edge/port/routes.ts";
import type { PeersView } from "#app/compose/mesh.ts";

/** `peers` is undefined while the node is in no mesh. */
export function peersRoute(admission: Admission, peers: () => PeersView | undefined): ServeElsewhere {
  return (request, peer) => {
    if (new URL(request.url).pathname !== "/peers") return undefined;
    return answer(request, peer, admission, peers);
  };
}

async function answer(
  request: Request,
  peer: Peer,
  admission: Admission,
  peers: () => PeersView | undefined,
): Promise<Response> {
  if (request.method !== "GET" && request.method !== "HEAD")
    return problem(405, "only GET is allowed here", { allow: "GET, HEAD" });
  const judged = await admission.judge(peer, request.headers, "cluster.read");
  if (!judged.ok) return refused(judged.refusal);
  const view = peers();
  if (!view) return problem(404, "this node is in no mesh: start it with --join or a mesh section");
  return Response.json(view, { headers: { "cache-control": "no-store" } });
}

/** `/api/builds` and `/api/why` behind the edge: the door's answers, to whom the edge's policy lets have them. */
import type { ActionIndex } from "#blobs/action-index.ts";
import type { BuildCaller } from "#doors/build/caller.ts";
import type { CallRefusal } from "#doors/build/http/caller.ts";
import { httpBuilds } from "#doors/build/builds/http-builds.ts";
import { BuildsService, type BuildsPorts } from "#doors/build/builds/service.ts";
import { TrustRules } from "#doors/build/cache/trust-rules.ts";
import { httpWhy } from "#doors/build/why/http-why.ts";
import type { Seen } from "#doors/build/why/seen.ts";
import type { Admission } from "#edge/port/admission.ts";
import type { Peer } from "#edge/port/port.ts";
import type { ServeElsewhere } from "#edge/port/routes.ts";
import { asCaller } from "./build.ts";
import { asCallRefusal, authorizationOf } from "./http-caches.ts";

export type HttpBuildsParts = BuildsPorts & {
  readonly index: ActionIndex;
  readonly seen: Seen | undefined;
  readonly report: (error: unknown) => void;
};

export function composeHttpBuilds({ report, seen, ...ports }: HttpBuildsParts, admission: Admission): ServeElsewhere {
  const { caller, from } = buildCallers(admission);
  const service = new BuildsService(ports);
  const builds = httpBuilds({ service, caller, report });
  const { client } = ports.execution;
  const about = { ...ports, client, builds: service, trust: new TrustRules(ports.index), caller, report };
  const why = seen ? httpWhy({ ...about, seen }) : () => undefined;
  return (request, peer) => {
    const asked = from(request, peer);
    return builds(asked) ?? why(asked);
  };
}

/** Who sent a request: told by its headers and by the connection that it came `from`. */
export function buildCallers(admission: Admission) {
  const peers = new WeakMap<Request, Peer>();
  const from = (request: Request, peer: Peer): Request => {
    peers.set(request, peer);
    return request;
  };
  const caller = async (
    request: Request,
  ): Promise<{ readonly caller: BuildCaller } | { readonly refused: CallRefusal }> => {
    const peer = peers.get(request);
    if (!peer) return { refused: { status: 401, message: "nobody knows where this came from" } };
    const who = await admission.identifyRequest(peer, request.headers, authorizationOf(request.headers));
    return who.ok ? { caller: asCaller(who.principal) } : { refused: asCallRefusal(who.refusal) };
  };
  return { from, caller };
}

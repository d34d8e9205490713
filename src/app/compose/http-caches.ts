/** The HTTP caches behind the edge: who calls is the edge's word, what they may do is its policy table. */
import type { Clock } from "#base/clock.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import type { CallRefusal, HttpCaller, Identified, Need } from "#doors/build/http/caller.ts";
import { httpCaches, type HttpCachesOptions } from "#doors/build/http/http-caches.ts";
import type { Admission } from "#edge/port/admission.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import { authorize, type Action } from "#access/policy.ts";
import type { Peer } from "#edge/port/port.ts";
import type { Principal } from "#access/principal.ts";
import { refusalStatus } from "#access/refusal-status.ts";
import type { Refusal } from "#access/refusal.ts";
import type { ServeElsewhere } from "#edge/port/routes.ts";
import { homeTenant } from "#access/caller.ts";
import { authorizationOf } from "./identify.ts";

export type HttpCacheParts = {
  readonly store: Store;
  readonly index: ActionIndex;
  readonly clock: Clock;
  readonly spool?: HttpCachesOptions["spool"];
  readonly spoolFolder: string;
  readonly limits?: HttpCachesOptions["limits"];
  readonly report: (error: unknown) => void;
};

const actionOf = {
  "blobs.read": "cache.read",
  "blobs.write": "cache.write",
  "names.read": "action-cache.read",
  "names.write": "action-cache.write",
} as const satisfies Record<Need, Action>;

export function composeHttpCaches(
  { limits, ...parts }: HttpCacheParts,
  admission: Admission,
  registry: MetricsRegistry,
): ServeElsewhere {
  const requests = registry.counter({
    name: "millrace_http_cache_requests_total",
    help: "Requests of build tools to their HTTP caches, by protocol, method and status.",
    labels: ["protocol", "method", "status"],
    seriesMax: 300,
  });
  const { identify, from } = callersOf(admission);
  const serve = httpCaches({
    ...parts,
    ...(limits && { limits }),
    ended: ({ protocol, method, status }) => requests.with(protocol, known(method), String(status)).add(),
    caller: identify,
  });
  return (request, peer) => serve(from(request, peer));
}

/** Who sent a request: told by its headers and by the connection that it came `from`. */
function callersOf(admission: Admission) {
  const peers = new WeakMap<Request, Peer>();
  const from = (request: Request, peer: Peer): Request => {
    peers.set(request, peer);
    return request;
  };
  const identify = async (request: Request): Promise<Identified> => {
    const peer = peers.get(request);
    if (!peer) return { refused: { status: 401, message: "the request has no connection" } };
    const who = await admission.identifyRequest(peer, request.headers, authorizationOf(request.headers));
    return who.ok ? { caller: callerOf(who.principal) } : { refused: asCallRefusal(who.refusal) };
  };
  return { from, identify };
}

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PROPFIND", "MKCOL"]);
const known = (method: string): string => (methods.has(method) ? method : "other");

function callerOf(principal: Principal): HttpCaller {
  const tenant = homeTenant(principal);
  return {
    tenant,
    principal: principal.name,
    refusal(need) {
      const judged = authorize(principal, actionOf[need], tenant);
      return judged.ok ? undefined : asCallRefusal(judged.refusal);
    },
  };
}

function asCallRefusal(refusal: Refusal): CallRefusal {
  const { http, challenge } = refusalStatus(refusal);
  const challenges = challenge === undefined ? undefined : `${challenge}, Basic realm="millrace"`;
  return {
    status: http,
    message: refusal.message,
    ...(challenges !== undefined && { headers: { "www-authenticate": challenges } }),
  };
}

/**
 * The caches that build tools use over HTTP, on one store: each tool has separate spaces, no tool can read what another
 * has named, and all of them share the blobs.
 */
import { homeTenant } from "#access/caller.ts";
import type { Clock } from "#base/clock.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import { bazel } from "./bazel.ts";
import { buildCaller } from "#doors/build/caller.ts";
import type { Identify } from "#http/serve.ts";
import type { BodyLimits } from "#http/body.ts";
import type { TrustRules } from "#doors/build/cache/trust-rules.ts";
import { ccache } from "./ccache.ts";
import { gradle } from "./gradle.ts";
import type { CachePorts } from "./named.ts";
import { nx } from "./nx.ts";
import type { Protocol } from "./protocol.ts";
import { asRefusal, HttpRefusal, refusedCall } from "./refusal.ts";
import { sccache } from "./sccache.ts";
import type { Spool } from "#blobs/spool.ts";
import { turborepo } from "./turborepo.ts";

/** In this order: a path that belongs to no other tool may be Bazel's, whose prefix is free. */
export const cacheProtocols: readonly Protocol[] = [ccache, sccache, gradle, turborepo, nx, bazel];

export type HttpCachesOptions = {
  readonly store: Store;
  readonly index: ActionIndex;
  readonly trust: TrustRules;
  readonly clock: Clock;
  /** For uploads whose digest is not known yet. */
  readonly spool: Spool;
  readonly limits: BodyLimits;
  /** Called once for each answered request. */
  readonly ended?: (call: EndedCall) => void;
  /** Called with internal errors; the caller gets 500. */
  readonly report: (error: unknown) => void;
};

export type EndedCall = { readonly protocol: string; readonly method: string; readonly status: number };

/** Undefined for paths that belong to no cache. */
export type HttpCaches = (request: Request, identify: Identify) => Promise<Response> | undefined;

export function httpCaches(options: HttpCachesOptions): HttpCaches {
  const { store, index, trust, clock, spool, limits } = options;
  const ports: CachePorts = {
    store,
    index,
    clock,
    trust,
    spool,
    limits,
  };
  return (request, identify) => {
    const url = new URL(request.url);
    const protocol = cacheProtocols.find((one) => one.owns(url.pathname));
    if (!protocol) return undefined;
    return answer(protocol, ports, options, { request, url, identify });
  };
}

type CacheRequest = { readonly request: Request; readonly url: URL; readonly identify: Identify };

async function answer(
  protocol: Protocol,
  ports: CachePorts,
  options: HttpCachesOptions,
  cacheCall: CacheRequest,
): Promise<Response> {
  const response = await served(protocol, ports, cacheCall).catch((error: unknown) => {
    const refusal = asRefusal(error);
    if (!refusal || refusal.status === 500) options.report(error);
    return protocol.refuse(refusal ?? new HttpRefusal(500, "internal error; see the node's log"));
  });
  options.ended?.({ protocol: protocol.name, method: cacheCall.request.method, status: response.status });
  return response;
}

async function served(
  protocol: Protocol,
  ports: CachePorts,
  { request, url, identify }: CacheRequest,
): Promise<Response> {
  const early = protocol.preflight?.(request);
  if (early) return early;
  const who = await identify(request);
  if (!who.ok) throw refusedCall(who.refusal);
  const { principal } = who.caller;
  return await protocol.serve(ports, { request, url, caller: buildCaller(principal, homeTenant(principal)) });
}

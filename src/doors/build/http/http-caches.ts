/**
 * The caches that build tools use over HTTP, on one store: each tool has separate spaces, no tool can read what another
 * has named, and all of them share the blobs.
 */
import type { Clock } from "#base/clock.ts";
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import { bazel } from "./bazel.ts";
import { idleMsDefault, type BodyLimits } from "./body.ts";
import type { TrustRules } from "#doors/build/cache/trust-rules.ts";
import type { Identify } from "./caller.ts";
import { ccache } from "./ccache.ts";
import { gradle } from "./gradle.ts";
import type { CachePorts } from "./named.ts";
import { nx } from "./nx.ts";
import type { Protocol } from "./protocol.ts";
import { asRefusal, HttpRefusal } from "./refusal.ts";
import { sccache } from "./sccache.ts";
import { Spool } from "./spool.ts";
import { turborepo } from "./turborepo.ts";

/** In this order: a path that belongs to no other tool may be Bazel's, whose prefix is free. */
export const cacheProtocols: readonly Protocol[] = [ccache, sccache, gradle, turborepo, nx, bazel];

export type HttpCachesOptions = {
  readonly store: Store;
  readonly index: ActionIndex;
  readonly trust: TrustRules;
  readonly caller: Identify;
  readonly clock: Clock;
  /** For uploads whose digest is not known yet. */
  readonly spoolFolder: string;
  readonly limits?: Partial<BodyLimits & { readonly spoolBytesMax: number }>;
  /** Called once for each answered request. */
  readonly ended?: (call: EndedCall) => void;
  /** Called with internal errors; the caller gets 500. */
  readonly report: (error: unknown) => void;
};

export type EndedCall = { readonly protocol: string; readonly method: string; readonly status: number };

/** Undefined for paths that belong to no cache. */
export type HttpCaches = (request: Request) => Promise<Response> | undefined;

const MiB = 1024 * 1024;

export function httpCaches(options: HttpCachesOptions): HttpCaches {
  const { store, index, trust, clock, limits = {} } = options;
  const ports: CachePorts = {
    store,
    index,
    clock,
    trust,
    spool: new Spool({
      folder: options.spoolFolder,
      memoryBytesEach: MiB,
      memoryBytesMax: 64 * MiB,
      bytesMax: limits.spoolBytesMax ?? 32 * 1024 * MiB,
    }),
    limits: { bytesMax: limits.bytesMax ?? 4 * 1024 * MiB, idleMs: limits.idleMs ?? idleMsDefault },
  };
  return (request) => {
    const url = new URL(request.url);
    const protocol = cacheProtocols.find((one) => one.owns(url.pathname));
    if (!protocol) return undefined;
    return answer(protocol, ports, options, request, url);
  };
}

async function answer(
  protocol: Protocol,
  ports: CachePorts,
  options: HttpCachesOptions,
  request: Request,
  url: URL,
): Promise<Response> {
  const response = await served(protocol, ports, options, request, url).catch((error: unknown) => {
    const refusal = asRefusal(error);
    if (!refusal || refusal.status === 500) options.report(error);
    return protocol.refuse(refusal ?? new HttpRefusal(500, "internal error; see the node's log"));
  });
  options.ended?.({ protocol: protocol.name, method: request.method, status: response.status });
  return response;
}

async function served(
  protocol: Protocol,
  ports: CachePorts,
  { caller: identify }: HttpCachesOptions,
  request: Request,
  url: URL,
): Promise<Response> {
  const early = protocol.preflight?.(request);
  if (early) return early;
  const known = await identify(request);
  if ("refused" in known) {
    const { status, message, headers } = known.refused;
    throw new HttpRefusal(status, message, headers);
  }
  return await protocol.serve(ports, { request, url, caller: known.caller });
}

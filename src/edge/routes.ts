/** What is served over plain HTTP, whichever version carries it. */
import { Hono } from "hono";
import type { Admission } from "./admission.ts";
import { crossSiteProblem } from "./cross-site.ts";
import { metricsContentType } from "./metrics-text.ts";
import type { MetricsRegistry } from "./metrics-registry.ts";
import { authorize, type Action } from "./policy.ts";
import type { Peer } from "./port.ts";
import { refusalStatus } from "./refusal-status.ts";
import type { Refusal } from "./refusal.ts";

export type RoutePorts = {
  readonly admission: Admission;
  readonly registry: MetricsRegistry;
  readonly isReady: () => boolean;
  /** What is served at other addresses; undefined for what is not. */
  readonly elsewhere?: ServeElsewhere | undefined;
};

export type ServeElsewhere = (request: Request, peer: Peer) => Promise<Response> | undefined;

type Bindings = { Bindings: { readonly peer: Peer } };

export function httpRoutes({ admission, registry, isReady, elsewhere }: RoutePorts): Hono<Bindings> {
  const routes = new Hono<Bindings>();
  routes.get("/livez", (context) => context.text("alive\n"));
  routes.get("/readyz", (context) => (isReady() ? context.text("ready\n") : context.text("not ready\n", 503)));
  routes.use(async ({ req: { raw }, env: { peer } }, next) => {
    const { method, url, headers } = raw;
    const isUnproven = admission.isUnproven(peer, headers.get("authorization"));
    const why = crossSiteProblem({ method, url, origin: headers.get("origin"), isUnproven });
    return why === undefined ? await next() : problem(403, why);
  });
  routes.get("/metrics", async (context) => {
    const refusal = await refusalOf(admission, context.env.peer, context.req.raw.headers, "metrics.read");
    if (refusal) return refused(refusal);
    return new Response(registry.text(), { headers: { "content-type": metricsContentType } });
  });
  routes.notFound(({ req, env }) => elsewhere?.(req.raw, env.peer) ?? problem(404, "there is nothing at this address"));
  routes.onError((error) => {
    throw error;
  });
  return routes;
}

async function refusalOf(
  admission: Admission,
  peer: Peer,
  headers: Headers,
  action: Action,
): Promise<Refusal | undefined> {
  const known = await admission.identify(peer, headers.get("authorization") ?? undefined);
  if (!known.ok) return known.refusal;
  const judged = authorize(known.principal, action);
  return judged.ok ? undefined : judged.refusal;
}

function refused(refusal: Refusal): Response {
  const { http, challenge } = refusalStatus(refusal);
  const response = problem(http, refusal.message);
  if (challenge !== undefined) response.headers.set("www-authenticate", challenge);
  return response;
}

/** Errors as RFC 9457 has them. */
const problem = (status: number, title: string): Response =>
  Response.json({ status, title }, { status, headers: { "content-type": "application/problem+json" } });

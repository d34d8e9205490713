/** What is served over plain HTTP, in any version. */
import { Hono } from "hono";
import type { Admission } from "./admission.ts";
import { browserProblem } from "#http/defence.ts";
import type { Login } from "#edge/identity/login.ts";
import { metricsContentType } from "#edge/metrics/text.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Peer } from "./port.ts";
import { allTenants } from "#access/principal.ts";
import { problem, refused } from "#edge/problem.ts";
import { sessionOf } from "#edge/identity/sessions.ts";

export type RoutePorts = {
  readonly admission: Admission;
  readonly login: Login;
  readonly registry: MetricsRegistry;
  /** Why the node does not take work; empty: it is ready. */
  readonly notReady: () => readonly string[];
  /** Serves other addresses; undefined if it does not know them. */
  readonly elsewhere?: ServeElsewhere | undefined;
};

export type ServeElsewhere = (request: Request, peer: Peer) => Promise<Response> | undefined;

type Bindings = { Bindings: { readonly peer: Peer } };

export function httpRoutes({ admission, login, registry, notReady, elsewhere }: RoutePorts): Hono<Bindings> {
  const routes = new Hono<Bindings>();
  for (const path of ["/livez", "/healthz"]) routes.get(path, (context) => context.text("alive\n"));
  routes.get("/readyz", (context) => {
    const why = notReady();
    return why.length === 0 ? context.text("ready\n") : context.text(`${["not ready", ...why].join("\n")}\n`, 503);
  });
  routes.use(async ({ req: { raw }, env: { peer } }, next) => {
    const { method, headers } = raw;
    const isProven = !admission.isUnproven(peer, headers.get("authorization"));
    const hasSession = headers.get("authorization") === null && sessionOf(headers.get("cookie")) !== undefined;
    const why = browserProblem({ method, url: new URL(raw.url), headers, isProven, hasSession });
    return why === undefined ? await next() : problem(403, why);
  });
  routes.get("/metrics", async (context) => {
    const judged = await admission.judge(context.env.peer, context.req.raw.headers, "metrics.read");
    if (!judged.ok) return refused(judged.refusal);
    const { tenant } = judged.caller.principal;
    const text = registry.text(tenant === allTenants ? undefined : tenant);
    return new Response(text, { headers: { "content-type": metricsContentType } });
  });
  routes.get("/login", ({ req, env }) =>
    req.method === "GET"
      ? login.redeem(env.peer, req.raw)
      : problem(405, "only GET is answered here", { allow: "GET" }),
  );
  routes.notFound(({ req, env }) => elsewhere?.(req.raw, env.peer) ?? problem(404, "there is nothing at this address"));
  routes.onError((error) => {
    throw error;
  });
  return routes;
}

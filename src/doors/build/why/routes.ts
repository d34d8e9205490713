/** Serves /v1/why. */
import { buildCaller } from "#doors/build/caller.ts";
import { buildRoute } from "#doors/build/http/problems.ts";
import type { Route } from "#http/route.ts";
import { askWhy, type WhyPorts } from "./ask.ts";
import { showWhy } from "./endpoints.ts";

export const whyRoutes = (ports: WhyPorts): readonly Route[] => [
  buildRoute(showWhy, async ({ query, caller, tenant, signal }) => ({
    body: { ...(await askWhy(ports, query, { caller: buildCaller(caller.principal, tenant), signal })) },
  })),
];

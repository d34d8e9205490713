/** Serves `GET /v1/why?of=`: an operation, a build (with `key`, an action of it), a job, or an action by its digest. */
import { z } from "zod";
import { buildCaller } from "#doors/build/caller.ts";
import { buildRoute } from "#doors/build/http/problems.ts";
import { endpoint, json } from "#http/endpoint.ts";
import type { Route } from "#http/route.ts";
import { askWhy, type WhyPorts } from "./ask.ts";

export const showWhy = endpoint({
  method: "GET",
  path: "/v1/why",
  action: "work.read",
  about: "Explains why something waits, missed the cache or ran again: an operation, a build, a job or an action.",
  query: z.object({
    of: z.string({ error: "say of what: ?of=OPERATION, BUILD or ACTION" }).min(1).max(2_000),
    key: z.string().max(1_000).optional().describe("Of a build: which action."),
    instance: z.string().max(1_000).optional(),
  }),
  answer: json(z.looseObject({ of: z.string(), told: z.array(z.string()).readonly() })),
});

export const whyRoutes = (ports: WhyPorts): readonly Route[] => [
  buildRoute(showWhy, async ({ query, caller, tenant, signal }) => ({
    body: { ...(await askWhy(ports, query, { caller: buildCaller(caller.principal, tenant), signal })) },
  })),
];

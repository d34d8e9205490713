/** `GET /v1/why?of=`: an operation, a build (with `key`, an action of it), a job, or an action by its digest. */
import { z } from "zod";
import { endpoint, json } from "#http/endpoint.ts";

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
  answer: json(z.looseObject({ of: z.string(), lines: z.array(z.string()).readonly() })),
});

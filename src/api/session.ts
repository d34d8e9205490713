/** Who the caller is to this node; what a browser shows, and how it knows that it has to sign in. */
import { z } from "zod";
import { endpoint, json } from "#http/endpoint.ts";

export const showSession = endpoint({
  method: "GET",
  path: "/v1/session",
  action: "service.describe",
  about: "Says who the caller is: name, tenant, roles, and how that was proven.",
  answer: json(
    z.object({
      name: z.string(),
      tenant: z.string().describe("`*` stands for all tenants."),
      roles: z.array(z.string()),
      proof: z.string().describe("token, jwt, certificate, session, owner, or anonymous."),
    }),
  ),
});

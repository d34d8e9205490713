/** Who the caller is to this node, and how a browser signs in and out. */
import { z } from "zod";
import { endpoint, json, none } from "#http/endpoint.ts";

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

export const startSession = endpoint({
  method: "POST",
  path: "/v1/session",
  action: "login.link",
  about: "Signs a browser in: trades the caller's token for a cookie that ends with it, within twelve hours.",
  answer: json(z.object({ name: z.string() }), 201),
});

export const endSession = endpoint({
  method: "DELETE",
  path: "/v1/session",
  action: "service.describe",
  about: "Signs this browser out: takes its cookie back.",
  answer: none,
});

export const makeLoginLink = endpoint({
  method: "POST",
  path: "/v1/session/link",
  action: "login.link",
  about: "Gives a link that signs a browser in as the caller. It works once, within minutes.",
  answer: json(z.object({ path: z.string().describe("Behind the node's address."), forMs: z.number() }), 201),
});

export const sessionEndpoints = [showSession, startSession, endSession, makeLoginLink] as const;

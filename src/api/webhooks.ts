/** Webhooks under /v1/webhooks: events of the feed, sent to an address of the tenant's choice. */
import { z } from "zod";
import { pageFields, pageOf } from "#http/cursor.ts";
import { endpoint, json, jsonBody, none } from "#http/endpoint.ts";

const filter = {
  url: z.string().min(1).max(2_000).describe("Where to send them, by POST: an https URL."),
  kinds: z
    .array(z.enum(["job", "stage", "task", "step"]))
    .max(4)
    .default(["job"])
    .describe("Only of these kinds."),
  doors: z.array(z.string().max(64)).max(16).default([]).describe("Only of these doors; none: all."),
  tags: z
    .array(
      z
        .string()
        .max(300)
        .regex(/^[^=]+=/, "write name=value"),
    )
    .max(16)
    .default([])
    .describe("Only of jobs with all of these tags, each as name=value."),
  format: z
    .string()
    .max(64)
    .default("millrace")
    .describe(
      "millrace: the feed's items; ci: workflow_run, workflow_job and status, of jobs of that door alone; ci:github, " +
        "ci:gitea, ci:gitlab: statuses of commits, set at the forge whose API is at url, with its token as secret.",
    ),
} as const;

const Wanted = z.strictObject({
  ...filter,
  secret: z
    .string()
    .min(16)
    .max(1_000)
    .optional()
    .describe("Signs each delivery. Left out: the one it has, or a new one, which this answer alone shows."),
});

const Dead = z.object({
  delivery: z.string(),
  event: z.string(),
  at: z.string(),
  attempts: z.number(),
  why: z.string(),
});

const Shown = z.object({
  name: z.string(),
  ...filter,
  by: z.string().describe("Who made it."),
  disabled: z.object({ at: z.string(), why: z.string() }).optional().describe("Set it again to enable it."),
  delivered: z.number(),
  dead: z.number().describe("Deliveries that were given up."),
  node: z.string().describe("Which node delivers it."),
  last: z.object({ at: z.string(), status: z.number(), event: z.string() }).optional(),
  trouble: z.object({ at: z.string(), why: z.string() }).optional().describe("Why the last attempt failed."),
  secret: z.string().optional().describe("Only in the answer of the call that made it."),
});

const params = z.object({ name: z.string().regex(/^[\w.-]{1,100}$/, "letters, digits, . _ and -") });
const path = "/v1/webhooks/{name}";

export const setWebhook = endpoint({
  method: "PUT",
  path,
  action: "webhook.write",
  about: "Makes a webhook, or replaces and enables it: events from now on are sent to its address.",
  params,
  body: jsonBody(Wanted),
  answer: json(Shown),
  // To set it again has the same effect: no digest of the secret is kept.
  idempotency: "handler",
});

export const listWebhooks = endpoint({
  method: "GET",
  path: "/v1/webhooks",
  action: "webhook.read",
  about: "Lists the tenant's webhooks, by name.",
  query: z.object({ ...pageFields }),
  answer: json(pageOf(Shown)),
});

export const showWebhook = endpoint({
  method: "GET",
  path,
  action: "webhook.read",
  about: "Shows a webhook, and the last fifty deliveries that were given up.",
  params,
  answer: json(Shown.extend({ letters: z.array(Dead) })),
});

export const removeWebhook = endpoint({
  method: "DELETE",
  path,
  action: "webhook.write",
  about: "Removes a webhook, its secret and its dead letters.",
  params,
  answer: none,
});

const Sent = z.object({ status: z.number().describe("Of the answer; 0: there was none."), why: z.string() });

export const testWebhook = endpoint({
  method: "POST",
  path: "/v1/webhooks/{name}/test",
  action: "webhook.write",
  about: "Sends an event `ping` to a webhook's address now, once.",
  params,
  answer: json(Sent),
});

export const redeliverWebhook = endpoint({
  method: "POST",
  path: "/v1/webhooks/{name}/redeliver",
  action: "webhook.write",
  about:
    "Sends dead letters again now, each once: the named one, or the first fifty. Those that are taken are removed.",
  params,
  body: jsonBody(z.strictObject({ delivery: z.string().max(100).optional() })),
  answer: json(z.object({ items: z.array(Sent.extend({ delivery: z.string() })) })),
});

export const webhookEndpoints = [
  setWebhook,
  listWebhooks,
  showWebhook,
  removeWebhook,
  testWebhook,
  redeliverWebhook,
] as const;

/** Taking the node that is asked out of service, and putting it back. */
import { z } from "zod";
import { endpoint, json } from "#http/endpoint.ts";

const Drain = z.object({
  state: z.enum(["serving", "draining", "drained", "leaving"]),
  running: z.int().describe("Attempts that run here, and those whose end has yet to be reported."),
  shards: z.int(),
  forMs: z.number(),
  leaves: z.boolean().describe("Whether the process ends afterwards."),
});

const path = "/v1/node/drain";

export const showDrain = endpoint({
  method: "GET",
  path,
  action: "cluster.read",
  about: "Says whether the node that is asked is being drained, and how far that is.",
  answer: json(Drain),
});

export const startDrain = endpoint({
  method: "POST",
  path,
  action: "cluster.admin",
  about: "Drains the node that is asked: it takes no more work, lets running work end and hands its shards over.",
  query: z.object({
    within: z.string().max(20).default("10m").describe("How long it may take, such as 10m; at most 7d."),
    leave: z.enum(["true", "false"]).default("true").describe("Whether the process ends afterwards."),
  }),
  answer: json(Drain, 202),
});

export const undoDrain = endpoint({
  method: "DELETE",
  path,
  action: "cluster.admin",
  about: "Puts the node that is asked back into service.",
  answer: json(Drain),
});

export const drainEndpoints = [showDrain, startDrain, undoDrain] as const;

/** What is kept until a declared time, under /v1/kept. */
import { z } from "zod";
import { pageFields, pageOf } from "#http/cursor.ts";
import { endpoint, json } from "#http/endpoint.ts";

export const Kept = z.object({
  name: z.string(),
  door: z.string().describe("The door that keeps it; empty for artifacts that tasks put."),
  about: z.string(),
  bytes: z.number(),
  until: z.iso.datetime().describe("When it goes: from then on it is not found, and its bytes may be evicted."),
  lostAt: z.iso.datetime().optional().describe("When some of its bytes were found to be gone too early."),
});

export const listKept = endpoint({
  method: "GET",
  path: "/v1/kept",
  action: "work.read",
  about: "Lists what is kept for the tenant until a declared time, by name, and says when it goes.",
  query: z.object({ ...pageFields, prefix: z.string().max(512).optional().describe("Only names that begin with it.") }),
  answer: json(pageOf(Kept)),
});

export const keptEndpoints = [listKept] as const;

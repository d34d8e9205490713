/** Calls that show one release: as it stands, live, and what it waits for. */
import { z } from "zod";
import { endpoint, events, json } from "#http/endpoint.ts";
import { shownStates } from "./machine-state.ts";

const params = z.object({ job: z.string().max(50).describe("The release's job.") });

const States = z
  .object(
    Object.fromEntries(shownStates.map((state) => [state, z.int()])) as Record<(typeof shownStates)[number], z.ZodInt>,
  )
  .describe("Machines by state; waiting: it runs what it ran before.");

const Wave = z.object({
  wave: z.int().describe("Counted from 1."),
  sharePpm: z.int(),
  bakeMs: z.int(),
  state: z.enum(["waiting", "running", "passed", "failed", "skipped"]),
  approvals: z.object({ needed: z.int(), by: z.array(z.string()).readonly() }),
  why: z.string().describe("What it waits for, or how it ended."),
  regions: z.array(z.object({ region: z.string(), machines: z.int(), running: z.int() })).readonly(),
});

export const ReleaseShape = z.object({
  job: z.string(),
  kind: z.enum(["release", "rollback"]),
  service: z.string(),
  sha: z.string().nullable(),
  phase: z.enum(["WAITING", "RUNNING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED"]),
  reason: z.string(),
  createdAt: z.string(),
  endedAt: z.string().nullable(),
  manifest: z.string().nullable(),
  paused: z.string().nullable().describe("Who paused it."),
  stages: z.array(z.object({ name: z.string(), phase: z.string(), why: z.string() })).readonly(),
  waves: z.array(Wave).readonly(),
  regions: z
    .array(
      z.object({
        region: z.string(),
        version: z.int().describe("Of the newest goal; 0: there is none."),
        halted: z.boolean(),
        isGoal: z.boolean().describe("Whether the newest goal is this release's."),
        wave: z.int(),
        machines: z.int(),
        states: States,
      }),
    )
    .readonly(),
});

export const showRelease = endpoint({
  method: "GET",
  path: "/v1/deploy/releases/{job}",
  action: "deploy.read",
  about: "Shows a release: its stages, its waves and its machines by region.",
  params,
  answer: json(ReleaseShape),
});

export const watchRelease = endpoint({
  method: "GET",
  path: "/v1/deploy/releases/{job}/watch",
  action: "deploy.read",
  about: "Sends a release whenever something about it has changed, until it has ended.",
  params,
  answer: events(ReleaseShape),
});

export const whyRelease = endpoint({
  method: "GET",
  path: "/v1/deploy/releases/{job}/why",
  action: "deploy.read",
  about: "Says what a release waits for, or how it ended; with `of`, one of its waves or machines.",
  params,
  query: z.object({ of: z.string().max(200).optional().describe("A wave, such as wave-2, or a machine's name.") }),
  answer: json(z.object({ of: z.string(), lines: z.array(z.string()).readonly() })),
});

export const viewEndpoints = [showRelease, watchRelease, whyRelease] as const;

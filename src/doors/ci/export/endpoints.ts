/** Everything that is known of a tenant's runs, for other systems; and artifacts of all runs by their names. */
import { z } from "zod";
import { endpoint, json, lines } from "#http/endpoint.ts";
import { RunId } from "#doors/ci/run-fields.ts";
import { RunDetails } from "#doors/ci/endpoints.ts";

const Artifact = z.object({
  run: RunId,
  repository: z.string(),
  name: z.string(),
  sizeBytes: z.int(),
  sha256: z.string(),
  createdAt: z.string(),
  expiresAt: z.string(),
});

export const ExportedRun = z.object({
  run: RunDetails,
  artifacts: z.array(Artifact.omit({ run: true, repository: true })),
  tests: z
    .array(z.object({ job: z.string(), name: z.string(), passed: z.int(), failed: z.int(), skipped: z.int() }))
    .describe("Its test reports."),
});

export const exportRuns = endpoint({
  method: "GET",
  path: "/v1/export/runs",
  action: "ci.read",
  about: "All runs of the tenant with their jobs, steps, artifacts and test reports, newest first, one run a line.",
  query: z.object({
    from: z.iso.date().optional().describe("Submitted on this day (UTC) or later; left out: all that are known."),
    to: z.iso.date().optional().describe("The last day; left out: today."),
  }),
  answer: lines(ExportedRun),
});

export const searchArtifacts = endpoint({
  method: "GET",
  path: "/v1/artifacts",
  action: "ci.read",
  about: "Finds artifacts of all runs by a part of their name, in any case; newest first.",
  query: z.object({
    text: z.string().max(200).default(""),
    repository: z.string().max(200).optional(),
    limit: z.coerce.number().int().min(1).max(500).default(50),
  }),
  answer: json(
    z.object({ items: z.array(Artifact), isCut: z.boolean().describe("There are more, or too many to look at all.") }),
  ),
});

export const exportEndpoints = [exportRuns, searchArtifacts] as const;

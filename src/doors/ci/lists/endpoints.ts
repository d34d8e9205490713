/** Calls about the parts of runs one by one, page by page, and about the runners that could take them. */
import { z } from "zod";
import { pageFields, pageOf } from "#http/cursor.ts";
import { endpoint, json } from "#http/endpoint.ts";
import { Run, RunJob } from "#doors/ci/endpoints.ts";
import { jobParams, runParams, Status } from "#doors/ci/run-fields.ts";

const Time = z.iso.datetime();

export const listRunJobs = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/jobs",
  action: "ci.read",
  about: "Lists the jobs of a run with their steps, in the order of the file.",
  params: runParams,
  query: z.object({ ...pageFields, status: Status.optional().describe("Only jobs that are in this state.") }),
  answer: json(pageOf(RunJob)),
});

export const showRunJob = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/jobs/{job}",
  action: "ci.read",
  about: "Shows one job of a run with its steps.",
  params: jobParams,
  answer: json(RunJob),
});

export const listRunAttempts = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/attempts",
  action: "ci.read",
  about: "Lists a run and the runs that repeat it, the first one first.",
  params: runParams,
  answer: json(z.object({ items: z.array(Run) })),
});

export const Attempt = z.object({
  number: z.int().describe("Counts from 1."),
  runner: z.string(),
  startedAt: Time.optional().describe("Absent where the runner never began."),
  endedAt: Time.optional(),
  outcome: z.string().describe("running, succeeded, failed, expired (its runner was lost), cancelled, released, ..."),
  reason: z.string().optional(),
});

export const listJobAttempts = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/jobs/{job}/attempts",
  action: "ci.read",
  about: "Lists the attempts at a job of a run; while the run goes on, the one that runs and what became of the last.",
  params: jobParams,
  answer: json(z.object({ items: z.array(Attempt) })),
});

export const Runner = z.object({
  name: z.string(),
  labels: z.array(z.string()).describe("What runs-on may ask for."),
  groups: z.array(z.string()),
  region: z.string().optional(),
  running: z.int().describe("How many jobs it has."),
  isSandboxed: z.boolean().describe("It takes jobs of callers who are not operators."),
  hasContainers: z.boolean().describe("It runs containers."),
  drained: z.string().optional().describe("Why it takes no more jobs."),
  seenAt: Time,
});

export const listRunners = endpoint({
  method: "GET",
  path: "/v1/runners",
  action: "ci.read",
  about: "Lists the runners that can take jobs of the caller's tenant, on nodes and elsewhere.",
  query: z.object({
    group: z.string().max(200).optional().describe("Only those of this group."),
    label: z.string().max(200).optional().describe("Only those with this label."),
  }),
  answer: json(z.object({ items: z.array(Runner) })),
});

export const listRunnerGroups = endpoint({
  method: "GET",
  path: "/v1/runner-groups",
  action: "ci.read",
  about: "Lists the groups of those runners, for `runs-on: {group: ...}`.",
  answer: json(
    z.object({
      items: z.array(z.object({ group: z.string(), runners: z.array(z.string()), labels: z.array(z.string()) })),
    }),
  ),
});

export const listEndpoints = [
  listRunJobs,
  showRunJob,
  listRunAttempts,
  listJobAttempts,
  listRunners,
  listRunnerGroups,
] as const;

/** `why` of a run, of one job and of one step; and what a job said besides its log. */
import { z } from "zod";
import { endpoint, json } from "#http/endpoint.ts";
import { Actions, Annotation, Summary } from "#doors/ci/details.ts";
import { Conclusion, decisions, jobParams, RunId, RunStatus, Status } from "#doors/ci/run-fields.ts";

const lines = z.array(z.string()).readonly().describe("The answer for people, line by line.");
const state = { status: Status, conclusion: Conclusion.optional() };
/** Recursive, which a JSON schema could say only with a name of its own. */
const Condition = z.object({
  expression: z.string(),
  value: z.string().optional().describe("As JSON; absent for what was not evaluated."),
  error: z.string().optional(),
  note: z.string().optional().describe("What a status function looked at."),
  parts: z
    .array(z.looseObject({ expression: z.string(), value: z.string().optional() }))
    .readonly()
    .optional()
    .describe("Its parts, each of the same form."),
});
const condition = Condition.optional().describe("Of what was skipped: its condition, each part with its value.");

const Wait = z.looseObject({
  kind: z
    .string()
    .describe("running, needs, lock, signal, back-off, parallel-max, quota, no-executor, drained, queued, ..."),
  runners: z.array(z.string()).optional().describe("Runners that can run it, ten at most."),
  unknownLabels: z
    .array(z.object({ label: z.string(), nearest: z.string().optional(), isGroup: z.literal(true).optional() }))
    .optional()
    .describe("Labels that no runner has, and groups without runners, each with the most similar one that there is."),
});

export const JobWhy = z.object({
  id: z.string(),
  name: z.string(),
  job: z.string().optional(),
  ...state,
  lines,
  condition,
  waits: Wait.optional().describe("What it waits for; absent when it has ended."),
});

export const whyRun = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/why",
  action: "ci.read",
  about: "Explains a run: what each of its jobs waits for, why it was skipped, or what failed in it.",
  params: z.object({ run: RunId }),
  answer: json(
    z.object({ run: RunId, ...state, status: RunStatus, decisions, lines, jobs: z.array(JobWhy).readonly() }),
  ),
});

export const whyRunJob = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/jobs/{job}/why",
  action: "ci.read",
  about: "Explains one job of a run.",
  params: jobParams,
  answer: json(JobWhy),
});

export const whyStep = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/jobs/{job}/steps/{step}/why",
  action: "ci.read",
  about: "Explains one step of a job: why it was skipped, what it waits for, or what failed in it.",
  params: jobParams.extend({ step: z.coerce.number().int().min(0).describe("Its number in the job, from 0.") }),
  answer: json(z.object({ step: z.int(), name: z.string(), ...state, lines, condition })),
});

export const showDetails = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/jobs/{job}/details",
  action: "ci.read",
  about: "Shows the annotations and summaries of a job that has ended, and as which commits its actions ran.",
  params: jobParams,
  answer: json(
    z.object({ annotations: z.array(Annotation), summaries: z.array(Summary), actions: Actions.optional() }),
  ),
});

export const whyEndpoints = [whyRun, whyRunJob, whyStep, showDetails] as const;

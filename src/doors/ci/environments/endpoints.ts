/** Calls about environments, what waits for a person, and what was deployed. */
import { z } from "zod";
import { endpoint, json, jsonBody, none } from "#http/endpoint.ts";
import { runParams } from "#doors/ci/run-fields.ts";
import { EnvironmentRules } from "./environments.ts";

const Name = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/);
const fields = {
  owner: Name.describe("The repository's owner: the part of its name before the slash."),
  name: Name.describe("The repository's name behind the slash."),
};
const environment = z.string().min(1).max(255).describe("The environment's name, in any case.");
const Time = z.iso.datetime();

export const EnvironmentView = z.object({ environment: z.string(), rules: EnvironmentRules, by: z.string(), at: Time });

export const listEnvironments = endpoint({
  method: "GET",
  path: "/v1/repositories/{owner}/{name}/environments",
  action: "ci.read",
  about: "Lists the environments of a repository that have rules.",
  params: z.object(fields),
  answer: json(z.object({ environments: z.array(EnvironmentView) })),
});

export const putEnvironment = endpoint({
  method: "PUT",
  path: "/v1/repositories/{owner}/{name}/environments/{environment}",
  action: "ci.admin",
  about: "Sets the rules of an environment: who reviews, how long jobs wait, which branches deploy.",
  params: z.object({ ...fields, environment }),
  body: jsonBody(EnvironmentRules, 64 * 1024),
  answer: none,
});

export const removeEnvironment = endpoint({
  method: "DELETE",
  path: "/v1/repositories/{owner}/{name}/environments/{environment}",
  action: "ci.admin",
  about: "Removes the rules of an environment: everything is let in. Its secrets and variables stay.",
  params: z.object({ ...fields, environment }),
  answer: none,
});

export const Waiting = z.object({
  environment: z.string().describe("Empty: the run as a whole, because who sent it has not contributed before."),
  jobs: z.array(z.string()),
  reviewers: z.array(z.string()).describe("Empty: all who may approve."),
  approvals: z.int().describe("How many are needed."),
  approvedBy: z.array(z.string()),
  waitsUntil: Time.optional().describe("The end of its wait timer."),
});

export const listApprovals = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/approvals",
  action: "ci.read",
  about: "Lists what a run waits for people to approve.",
  params: runParams,
  answer: json(z.object({ waiting: z.array(Waiting) })),
});

export const reviewRun = endpoint({
  method: "POST",
  path: "/v1/runs/{run}/approvals",
  action: "ci.approve",
  about: "Approves or rejects what a run waits for. A person counts once; what it said first counts.",
  params: runParams,
  body: jsonBody(
    z.strictObject({
      state: z.enum(["approved", "rejected"]),
      environments: z
        .array(z.string().max(255))
        .min(1)
        .max(100)
        .optional()
        .describe("Left out: all that it waits for."),
      comment: z.string().max(1_000).default(""),
    }),
    64 * 1024,
  ),
  answer: json(z.object({ reviewed: z.array(z.string()) })),
});

export const DeploymentView = z.object({
  environment: z.string(),
  state: z
    .enum(["queued", "in_progress", "success", "failure", "error", "inactive"])
    .describe("error: it was cancelled; inactive: a later one succeeded."),
  run: z.string(),
  job: z.string().describe("Its name in the run."),
  ref: z.string(),
  sha: z.string(),
  by: z.string(),
  at: Time,
  url: z.string().optional(),
});

export const listDeployments = endpoint({
  method: "GET",
  path: "/v1/repositories/{owner}/{name}/deployments",
  action: "ci.read",
  about: "Lists what was deployed to the environments of a repository, the newest first.",
  params: z.object(fields),
  query: z.object({
    environment: environment.optional(),
    limit: z.coerce.number().int().min(1).max(100).default(30),
  }),
  answer: json(z.object({ deployments: z.array(DeploymentView) })),
});

export const environmentEndpoints = [
  listEnvironments,
  putEnvironment,
  removeEnvironment,
  listApprovals,
  reviewRun,
  listDeployments,
] as const;

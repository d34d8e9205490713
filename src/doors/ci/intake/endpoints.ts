/** The door's calls about workflows, what triggers them and what they may know. */
import { z } from "zod";
import { endpoint, json, jsonBody, none } from "#http/endpoint.ts";

const Name = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/);
const repositoryFields = {
  owner: Name.describe("The repository's owner: the part of its name before the slash."),
  name: Name.describe("The repository's name behind the slash."),
};
const repositoryParams = z.object(repositoryFields);
const RepositoryName = z.string().regex(/^[^/\s]{1,100}\/[^/\s]{1,100}$/);
const Time = z.iso.datetime();
const workflowParams = z.object({
  ...repositoryFields,
  workflow: z
    .string()
    .regex(/^[^/]{1,200}\.ya?ml$/)
    .describe("The file's name below .github/workflows."),
});

export const WorkflowView = z.object({
  path: z.string(),
  name: z.string(),
  state: z.enum(["active", "disabled", "invalid"]),
  problem: z.string().optional().describe("What is wrong with an invalid one."),
  events: z.array(z.string()).describe("What it runs on."),
  schedules: z.array(
    z.object({
      cron: z.string(),
      zone: z.string(),
      next: Time.optional(),
      last: z.object({ at: Time, run: z.string() }).optional(),
      trouble: z.string().optional().describe("Why the last instant started no run."),
    }),
  ),
});

export const listWorkflows = endpoint({
  method: "GET",
  path: "/v1/repositories/{owner}/{name}/workflows",
  action: "ci.read",
  about: "Lists the workflows of the default branch: what they run on, their schedules with the next instant.",
  params: repositoryParams,
  answer: json(z.object({ workflows: z.array(WorkflowView) })),
});

export const enableWorkflow = endpoint({
  method: "POST",
  path: "/v1/repositories/{owner}/{name}/workflows/{workflow}/enable",
  action: "ci.run",
  about: "Lets events start a workflow again.",
  params: workflowParams,
  answer: none,
});

export const disableWorkflow = endpoint({
  method: "POST",
  path: "/v1/repositories/{owner}/{name}/workflows/{workflow}/disable",
  action: "ci.run",
  about: "Keeps a workflow from being started, by events and by hand; what runs goes on.",
  params: workflowParams,
  answer: none,
});

export const workflowBadge = endpoint({
  method: "GET",
  path: "/v1/repositories/{owner}/{name}/workflows/{workflow}/badge.svg",
  action: "ci.read",
  about: "A picture of how the last run of a workflow ended.",
  params: workflowParams,
  query: z.object({ branch: z.string().max(500).optional().describe("Left out: of any branch.") }),
  answer: { kind: "bytes", contentType: "image/svg+xml" },
});

export const makeHook = endpoint({
  method: "POST",
  path: "/v1/repositories/{owner}/{name}/hook",
  action: "ci.admin",
  about: "Makes the address and the secret with which a forge sends webhooks; a secret from before ends.",
  params: repositoryParams,
  answer: json(
    z.object({
      path: z.string().describe("Below the node's own address; for GitHub, Gitea, Forgejo and GitLab."),
      secret: z.string().describe("Shown once."),
    }),
    201,
  ),
});

export const removeHook = endpoint({
  method: "DELETE",
  path: "/v1/repositories/{owner}/{name}/hook",
  action: "ci.admin",
  about: "Takes no more webhooks for a repository.",
  params: repositoryParams,
  answer: none,
});

export const listDeliveries = endpoint({
  method: "GET",
  path: "/v1/repositories/{owner}/{name}/deliveries",
  action: "ci.read",
  about: "Lists the last hundred webhooks of a repository, and what came of them.",
  params: repositoryParams,
  answer: json(
    z.object({
      deliveries: z.array(
        z.object({
          delivery: z.string(),
          forge: z.string(),
          event: z.string(),
          id: z.string().describe("As the forge calls it."),
          at: Time,
          handled: z.boolean(),
          runs: z.array(z.string()),
          why: z.string().optional().describe("Why it started nothing, or has not yet."),
        }),
      ),
    }),
  ),
});

/** Where a variable counts: at the narrowest that is named. */
const scopeFields = {
  owner: z
    .string()
    .regex(/^[^/\s]{1,100}$/)
    .optional()
    .describe("Of all repositories of this owner."),
  repository: RepositoryName.optional().describe("Of one repository."),
  environment: z.string().min(1).max(100).optional().describe("Of one environment of the repository."),
};

const Variable = z.object({
  name: z.string(),
  value: z.string(),
  owner: z.string().optional(),
  repository: z.string().optional().describe("Absent, like the owner: for all repositories."),
  environment: z.string().optional(),
  by: z.string(),
  at: Time,
});

export const listVariables = endpoint({
  method: "GET",
  path: "/v1/variables",
  action: "ci.read",
  about: "Lists the variables (`vars`) of all repositories, and those of an owner, a repository or an environment.",
  query: z.object(scopeFields),
  answer: json(z.object({ variables: z.array(Variable) })),
});

export const putVariable = endpoint({
  method: "PUT",
  path: "/v1/variables/{variable}",
  action: "ci.admin",
  about: "Sets a variable (`vars`) of all repositories, an owner, a repository or an environment.",
  params: z.object({ variable: z.string().min(1).max(200) }),
  body: jsonBody(z.strictObject({ value: z.string().max(48 * 1024), ...scopeFields }), 256 * 1024),
  answer: none,
});

export const removeVariable = endpoint({
  method: "DELETE",
  path: "/v1/variables/{variable}",
  action: "ci.admin",
  about: "Removes a variable.",
  params: z.object({ variable: z.string().min(1).max(200) }),
  query: z.object(scopeFields),
  answer: none,
});

export const intakeEndpoints = [
  listWorkflows,
  enableWorkflow,
  disableWorkflow,
  workflowBadge,
  makeHook,
  removeHook,
  listDeliveries,
  listVariables,
  putVariable,
  removeVariable,
] as const;

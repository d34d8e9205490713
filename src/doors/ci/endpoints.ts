/** The door's calls under /v1: what may be asked, and the shape of the answers. */
import { z } from "zod";
import { pageFields, pageOf } from "#http/cursor.ts";
import { endpoint, events, json, jsonBody, none, socket } from "#http/endpoint.ts";
import { Conclusion, decisions, jobParams, RunId, runParams, RunStatus, Status } from "./run-fields.ts";

const Name = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/);
const repositoryParams = z.object({
  owner: Name.describe("The repository's owner: the part of its name before the slash."),
  name: Name.describe("The repository's name behind the slash."),
});
const Time = z.iso.datetime();

export const Repository = z.object({
  repository: z.string().describe("owner/name"),
  url: z.string().optional().describe("Absent for one that a node keeps itself."),
});

export const listRepositories = endpoint({
  method: "GET",
  path: "/v1/repositories",
  action: "ci.read",
  about: "Lists the repositories whose workflows can run.",
  answer: json(z.object({ repositories: z.array(Repository) })),
});

export const putRepository = endpoint({
  method: "POST",
  path: "/v1/repositories",
  action: "ci.admin",
  about: "Registers a repository by a path or a URL that git can fetch from, or keeps an empty one to push to.",
  body: jsonBody(
    z.strictObject({
      repository: z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/),
      url: z
        .string()
        .min(1)
        .max(2_000)
        .regex(/^[^-\s][^\s]*$/)
        .optional()
        .describe("As the nodes see it. Left out: the node that is asked keeps the repository."),
    }),
    16 * 1024,
  ),
  answer: json(Repository, 201),
});

export const removeRepository = endpoint({
  method: "DELETE",
  path: "/v1/repositories/{owner}/{name}",
  action: "ci.admin",
  about: "Forgets a repository. Its runs stay.",
  params: repositoryParams,
  answer: none,
});

export const dispatchWorkflow = endpoint({
  method: "POST",
  path: "/v1/repositories/{owner}/{name}/dispatches",
  action: "ci.run",
  about: "Starts a workflow that runs on workflow_dispatch, at a branch, a tag or a commit.",
  params: repositoryParams,
  body: jsonBody(
    z.strictObject({
      workflow: z.string().min(1).max(500).describe("The file's name, or its path."),
      ref: z.string().min(1).max(500).optional().describe("Left out: the default branch."),
      inputs: z.record(z.string().max(200), z.string().max(65_535)).default({}),
    }),
  ),
  answer: json(
    z.object({
      run: RunId,
      created: z.boolean(),
      warnings: z
        .array(z.string())
        .optional()
        .describe("Such as labels that no runner has: the run would wait for one."),
    }),
    202,
  ),
});

export const sendEvent = endpoint({
  method: "POST",
  path: "/v1/repositories/{owner}/{name}/events",
  action: "ci.run",
  about: "Tells of an event, and starts the workflows that run on it; the same id never starts one twice.",
  params: repositoryParams,
  body: jsonBody(
    z.strictObject({
      id: z.string().min(1).max(200).describe("The same event has the same id, however often it is sent."),
      event: z
        .string()
        .regex(/^[a-z_]{1,50}$/)
        .describe("push, pull_request, repository_dispatch, ..."),
      action: z.string().max(100).optional().describe("Such as opened; for repository_dispatch the type."),
      ref: z.string().max(500).optional().describe("refs/heads/main; left out: the default branch."),
      sha: z
        .string()
        .regex(/^[0-9a-f]{40}$/)
        .optional()
        .describe("Left out: what the ref means now."),
      before: z
        .string()
        .regex(/^[0-9a-f]{40}$/)
        .optional()
        .describe("What the ref meant before."),
      headRef: z.string().max(500).optional().describe("The branch that a pull request comes from."),
      baseRef: z.string().max(500).optional().describe("The branch that a pull request goes to."),
      payload: z.record(z.string(), z.unknown()).default({}).describe("github.event, besides what the node knows."),
    }),
  ),
  answer: json(
    z.object({
      started: z.array(z.object({ path: z.string(), run: RunId, created: z.boolean() })),
      passed: z.array(z.object({ path: z.string(), why: z.string() })).describe("Workflows that did not run, and why."),
    }),
    202,
  ),
});

const finding = { message: z.string(), line: z.int().optional(), column: z.int().optional() };

export const validateWorkflow = endpoint({
  method: "POST",
  path: "/v1/workflows:validate",
  action: "ci.read",
  about: "Checks the text of a workflow, as `millrace ci lint` does: what is wrong with it or dangerous, and where.",
  body: jsonBody(
    z.strictObject({ path: z.string().max(500).default("workflow.yml"), text: z.string() }),
    5 * 1024 * 1024,
  ),
  answer: json(
    z.object({
      valid: z.boolean(),
      problems: z.array(z.object(finding)),
      warnings: z.array(z.object({ ...finding, rule: z.string().describe("As `millrace ci lint --sarif` names it.") })),
    }),
  ),
});

export const Run = z.object({
  run: RunId,
  repository: z.string(),
  workflow: z.string(),
  path: z.string().describe("The workflow's file."),
  title: z.string(),
  event: z.string(),
  ref: z.string(),
  sha: z.string(),
  actor: z.string(),
  number: z.int().optional().describe("Counts the runs of a workflow."),
  attempt: z.int().optional().describe("Absent for a first attempt."),
  again: RunId.optional().describe("The run that this one repeats."),
  status: RunStatus,
  decisions,
  conclusion: Conclusion.optional(),
  createdAt: Time,
  endedAt: Time.optional(),
});

const Step = z.object({
  number: z.int(),
  name: z.string(),
  status: Status,
  conclusion: Conclusion.optional(),
  startedAt: Time.optional(),
  tookMs: z.number().optional(),
});

export const RunJob = z.object({
  job: z.string().optional().describe("The id by which its log is asked for; absent before it is planned."),
  id: z.string().describe("Its name in the file."),
  name: z.string(),
  needs: z.array(z.string()),
  status: Status,
  conclusion: Conclusion.optional(),
  isFailureAllowed: z.literal(true).optional().describe("It failed, and counts as a success: continue-on-error."),
  reason: z.string().describe("Why it was skipped, or failed before it ran."),
  attempts: z.int(),
  runner: z.string().optional(),
  failure: z.string().optional().describe("Why its last attempt ended without a result."),
  steps: z.array(Step),
});

export const RunDetails = Run.extend({ reason: z.string(), jobs: z.array(RunJob) });

const runFilter = {
  repository: z.string().max(201).optional().describe("Only runs of this repository, as owner/name."),
  workflow: z.string().max(500).optional().describe("Only runs of this workflow: its file's name, or its path."),
  branch: z.string().max(500).optional().describe("Only runs of this branch or tag."),
};

export const listRuns = endpoint({
  method: "GET",
  path: "/v1/runs",
  action: "ci.read",
  about: "Lists runs, the newest first.",
  query: z.object({
    ...pageFields,
    ...runFilter,
    event: z.string().max(50).optional().describe("Only runs of this event, such as push."),
    actor: z.string().max(200).optional().describe("Only runs that this person or forge's user began."),
    conclusion: Conclusion.exclude(["skipped"]).optional().describe("Only runs that ended so."),
  }),
  answer: json(pageOf(Run)),
});

export const showRun = endpoint({
  method: "GET",
  path: "/v1/runs/{run}",
  action: "ci.read",
  about: "Shows a run with its jobs and their steps.",
  params: runParams,
  answer: json(RunDetails),
});

export const cancelRun = endpoint({
  method: "POST",
  path: "/v1/runs/{run}/cancel",
  action: "ci.run",
  about: "Cancels a run.",
  params: runParams,
  answer: none,
});

export const rerunRun = endpoint({
  method: "POST",
  path: "/v1/runs/{run}/rerun",
  action: "ci.run",
  about:
    "Runs again: all jobs, those that did not succeed, or one, from its beginning or from one of its steps; " +
    "each with the jobs that need it.",
  params: runParams,
  body: jsonBody(
    z.strictObject({
      failed: z.boolean().default(false).describe("Only jobs that did not succeed."),
      job: z.string().min(1).max(200).optional().describe("Only this job, by its name in the file."),
      fromStep: z
        .int()
        .min(0)
        .optional()
        .describe("The job goes on at the step with this number, with what was kept before it."),
      script: z
        .string()
        .min(1)
        .max(64 * 1024)
        .optional()
        .describe("Takes the place of that step's script; for operators only."),
    }),
    128 * 1024,
  ),
  answer: json(z.object({ run: RunId.describe("The new run.") }), 202),
});

const Flag = z.enum(["true", "false"]).transform((text) => text === "true");
const stepField = z.coerce.number().int().min(0).optional().describe("Only lines of this step.");

export const LogLines = z.object({
  lines: z.array(
    z.object({
      at: z.string(),
      step: z.int().optional().describe("Absent for what belongs to the job itself."),
      kind: z.string().describe("plain, command, debug, notice, warning, error, group, started, ended, ..."),
      text: z.string(),
    }),
  ),
  ended: z.boolean().optional().describe("True in the last event of a log that is followed."),
  shed: z
    .string()
    .optional()
    .describe("Of a viewer that reads too slowly, the last event: why. Ask again with its id as Last-Event-ID."),
});

export const followLog = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/jobs/{job}/logs",
  action: "ci.read",
  about: "Sends a job's log, line by line in batches; with follow until the job has ended. Resumes by Last-Event-ID.",
  params: jobParams,
  query: z.object({ follow: Flag.default(false), step: stepField }),
  answer: events(LogLines),
});

export const readLog = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/jobs/{job}/log.txt",
  action: "ci.read",
  about: "Reads a job's log so far, as plain text.",
  params: jobParams,
  query: z.object({ step: stepField }),
  answer: { kind: "bytes", contentType: "text/plain; charset=utf-8" },
});

export const searchLog = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/jobs/{job}/log/search",
  action: "ci.read",
  about: "Finds lines of a job's log so far that have a text in them, in any case.",
  params: jobParams,
  query: z.object({
    text: z.string().min(1).max(500),
    limit: z.coerce.number().int().min(1).max(1_000).default(100),
    step: stepField,
  }),
  answer: json(
    z.object({
      matches: z.array(
        z.object({
          line: z.int().describe("Its number, from 1; of a step alone, its number among the step's."),
          at: z.string(),
          step: z.int().optional(),
          kind: z.string(),
          text: z.string(),
        }),
      ),
      isCut: z.boolean().describe("There are more."),
    }),
  ),
});

/** "refresh" asks for the run's state now, changed or not. */
export const RunSocketReceives = z.strictObject({ kind: z.literal("refresh") });

/** The run at first and after each change; "end" is the last message, and the node closes the connection after it. */
export const RunSocketSends = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("run"), run: RunDetails }),
  z.object({ kind: z.literal("end") }),
]);

export const runSocket = endpoint({
  method: "GET",
  path: "/v1/runs/{run}/socket",
  action: "ci.read",
  about: "Opens a WebSocket that sends the run with its jobs and steps whenever it changes, until it has ended.",
  params: runParams,
  answer: socket(RunSocketReceives, RunSocketSends),
});

export const searchLogs = endpoint({
  method: "GET",
  path: "/v1/logs",
  action: "ci.read",
  about:
    "Finds lines with a text, in any case, in the logs of all runs, the newest run first. One call looks at a part: " +
    "ask again with `next` until there is none.",
  query: z.object({
    text: z.string().min(1).max(500),
    ...runFilter,
    limit: z.coerce.number().int().min(1).max(1_000).default(100),
    cursor: z.string().max(4_000).optional().describe("`next` of the answer before."),
  }),
  answer: json(
    z.object({
      items: z.array(
        z.object({
          run: RunId,
          repository: z.string(),
          job: z.string().describe("The job's name."),
          at: z.string(),
          step: z.int().optional(),
          kind: z.string(),
          text: z.string(),
        }),
      ),
      runs: z.int().describe("How many runs this call looked at."),
      next: z.string().optional().describe("The cursor for the rest; absent when all runs were looked at."),
    }),
  ),
});

export const ciEndpoints = [
  listRepositories,
  putRepository,
  removeRepository,
  dispatchWorkflow,
  sendEvent,
  validateWorkflow,
  listRuns,
  showRun,
  cancelRun,
  rerunRun,
  followLog,
  readLog,
  searchLog,
  searchLogs,
  runSocket,
] as const;

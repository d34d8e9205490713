/** Jobs of all doors under /v1/jobs: what may be asked, and the shape of the answers. */
import { z } from "zod";
import { pageFields, pageOf } from "#http/cursor.ts";
import { endpoint, events, json, jsonBody, lines, many } from "#http/endpoint.ts";

export const jobPhases = ["WAITING", "RUNNING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED"] as const;

const Time = z.iso.datetime();
const JobId = z.string().max(50).describe("The job's id, such as j0-1.");
const params = z.object({ job: JobId });

export const JobSummary = z.object({
  job: JobId,
  tenant: z.string(),
  door: z.string(),
  name: z.string(),
  phase: z.enum(jobPhases),
  priority: z.int(),
  submittedAt: Time,
  endedAt: Time.optional(),
  tasks: z.int().optional().describe("Absent where only history remembers the job."),
  done: z.int().optional(),
  tags: z.record(z.string(), z.string()).optional().describe("What it is found by."),
  series: z.string().optional().describe("The series that it took its number of."),
  number: z.int().optional().describe("Its number in that series."),
});

const tagsMax = 16;
const TagName = z
  .string()
  .max(64)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]*$/);
const TagText = z
  .string()
  .max(400)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]*=./, "write it as name=value");

const Stage = z.object({
  name: z.string(),
  needs: z.array(z.string()),
  phase: z.string(),
  reason: z.string(),
  tasks: z.int(),
  done: z.int(),
  failed: z.int(),
  running: z.int(),
  waitsForSignals: z.array(z.string()),
  manifest: z.string().optional().describe("The blob that lists the results of its tasks, for a stage with an array."),
});

const Task = z.object({
  task: z.string(),
  stage: z.string(),
  key: z.string(),
  kind: z.string(),
  phase: z.string(),
  attempts: z.int(),
  executors: z.array(z.string()).describe("Who runs it now."),
  steps: z
    .array(z.object({ step: z.int(), name: z.string(), status: z.string() }))
    .optional()
    .describe("What its attempt reported, while the job is live."),
  retryInMs: z.number().optional().describe("When it is tried again."),
  failure: z.object({ reason: z.string(), message: z.string() }).optional(),
  result: z.string().optional().describe("What the task's runner recorded, as text."),
});

export const JobDetails = JobSummary.omit({ tasks: true, done: true }).extend({
  reason: z.string(),
  resultsUntil: Time.optional().describe(
    "When its logs and results go. Absent while it runs, and where they are a cache.",
  ),
  stages: z.array(Stage),
  tasks: z.array(Task).describe("The first tasks of the job; a large job has more."),
  shown: z.array(z.string()).describe("The job in lines for people, as its door shows it."),
});

const Flag = z.enum(["true", "false"]).transform((text) => text === "true");

const Output = z.object({
  kind: z.literal("output"),
  task: z.string(),
  stage: z.string(),
  key: z.string(),
  stream: z.string().describe("output; or stdout and stderr, where they are kept apart."),
  offset: z.int().describe("Bytes that the attempt had printed to this stream before."),
  text: z.string(),
  several: z.boolean().describe("Whether other tasks of the job may print as well."),
});

const State = z.object({
  kind: z.literal("state"),
  phase: z.string(),
  ended: z.boolean(),
  lines: z.array(z.string()).describe("What has happened, for people."),
  progress: z.string(),
});

export const JobOutput = Output;
export const JobFollowed = z.discriminatedUnion("kind", [Output, State]);

const JobsPage = pageOf(JobSummary).extend({
  unreachable: z.array(z.int()).describe("Shards that did not answer: their running jobs are missing."),
});

const filters = {
  phase: z.enum(jobPhases).optional().describe("Only jobs in this phase."),
  door: z.string().max(100).optional().describe("Only jobs of this door."),
  tag: many(TagText, tagsMax, "Only jobs with this tag, as name=value; given several times: with all of them."),
  from: Time.optional().describe("Only jobs submitted at this time or later."),
  to: Time.optional().describe("Only jobs submitted before this time."),
} as const;

export const listJobs = endpoint({
  method: "GET",
  path: "/v1/jobs",
  action: "work.read",
  about: "Lists jobs, newest first.",
  query: z.object({ ...pageFields, ...filters }),
  answer: json(JobsPage),
});

export const countJobs = endpoint({
  method: "GET",
  path: "/v1/jobs/count",
  action: "work.read",
  about: "Counts jobs by phase: what has not ended now, what has ended as history has it, a moment behind.",
  query: z.object(filters),
  answer: json(
    z.object({
      jobs: z.int(),
      phases: z.partialRecord(z.enum(jobPhases), z.int()),
      capped: z.boolean().describe("There are more jobs than are gone through for one answer: there may be more."),
      unreachable: z.array(z.int()).describe("Shards that did not answer: their running jobs are not counted."),
    }),
  ),
});

export const submitJob = endpoint({
  method: "POST",
  path: "/v1/jobs",
  action: "work.submit",
  about:
    "Records a job: a command line, or a document that says what to run after what. " +
    "With an Idempotency-Key it is recorded once, however often it is sent.",
  body: jsonBody(
    z.strictObject({
      door: z.string().max(100).optional().describe("Which door plans it; left out: the one that takes command lines."),
      command: z.array(z.string().max(100_000)).min(1).max(10_000).optional().describe("A program and its arguments."),
      array: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe("Runs the command this many times, as tasks with the indices 1 and up in MILLRACE_INDEX."),
      document: z
        .union([z.string().max(1_000_000), z.looseObject({})])
        .optional()
        .describe("A job file: its text as YAML or JSON, or its parsed value."),
      name: z.string().min(1).max(200).optional(),
      key: z.string().min(1).max(200).optional().describe("The same key never makes a second job."),
      merge: z.string().min(1).max(200).optional().describe("Joins a living job with the same merge key."),
      priority: z.int().min(-100).max(100).default(0),
      tags: z
        .record(TagName, z.string().min(1).max(256))
        .refine((tags) => Object.keys(tags).length <= tagsMax, `at most ${tagsMax} tags`)
        .optional()
        .describe("What it is found by, such as repository and branch."),
      series: z.string().min(1).max(200).optional().describe("Takes the next number of this series of the tenant."),
    }),
  ),
  answer: json(
    z.object({
      job: JobId,
      created: z.boolean(),
      merged: z.boolean(),
      number: z.int().optional().describe("Its number in the series."),
    }),
    201,
    200,
  ),
});

export const rerunJob = endpoint({
  method: "POST",
  path: "/v1/jobs/{job}/rerun",
  action: "work.submit",
  about: "Submits a job again as it was submitted, from history: its stages, specs and tags. Takes the next number.",
  params,
  body: jsonBody(
    z.strictObject({
      reuse: z.boolean().default(false).describe("Takes over the results of tasks that succeeded."),
      key: z.string().min(1).max(200).optional().describe("The same key never makes a second job."),
    }),
  ),
  answer: json(z.object({ job: JobId, created: z.boolean(), number: z.int().optional() }), 201, 200),
});

export const watchJobs = endpoint({
  method: "GET",
  path: "/v1/jobs/watch",
  action: "work.read",
  about: "Sends the newest jobs, and again whenever one of them has changed.",
  query: z.object({ limit: pageFields.limit, ...filters }),
  answer: events(JobsPage),
});

export const showJob = endpoint({
  method: "GET",
  path: "/v1/jobs/{job}",
  action: "work.read",
  about: "Shows a job with its stages and tasks.",
  params,
  answer: json(JobDetails),
});

export const watchJob = endpoint({
  method: "GET",
  path: "/v1/jobs/{job}/watch",
  action: "work.read",
  about: "Sends the job whenever it changes, until it has ended.",
  params,
  answer: events(JobDetails),
});

export const logsOfJob = endpoint({
  method: "GET",
  path: "/v1/jobs/{job}/logs",
  action: "work.read",
  about: "Sends what the tasks of a job print or printed. Last-Event-ID goes on after a lost connection.",
  params,
  query: z.object({
    follow: Flag.optional().describe("Goes on until the job has ended."),
    task: z.string().max(400).optional().describe("Only this task: its id, or its stage and key as stage/key."),
  }),
  answer: events(JobOutput),
});

export const logOfTask = endpoint({
  method: "GET",
  path: "/v1/jobs/{job}/tasks/{task}/log",
  action: "work.read",
  about:
    "What the last attempt at a task has printed, as plain text: so far, while it runs. Takes one Range, also of the " +
    "last bytes (bytes=-1000). The header millrace-log says whether it is live, sealed or empty.",
  params: params.extend({
    task: z.string().max(400).describe("The task's id, or its stage and key as stage/key, with the slash as %2F."),
  }),
  query: z.object({
    stream: z.string().max(100).optional().describe("stdout or stderr, where they are kept apart; otherwise output."),
  }),
  answer: { kind: "bytes", contentType: "text/plain; charset=utf-8" },
});

const StageLine = z.object({
  kind: z.literal("stage"),
  stage: z.string(),
  phase: z.string(),
  generation: z.int(),
  tasks: z.int(),
  complete: z.boolean().describe("Whether the stage has ended and all of its tasks are listed."),
  manifest: z.string().optional().describe("The blob that lists the same, where the stage has one."),
});

const ResultLine = z.object({
  kind: z.literal("result"),
  task: z.string(),
  key: z.string(),
  phase: z.string(),
  generation: z.int(),
  result: z.string().optional().describe("What the task's runner recorded, as text."),
  digests: z.array(z.string()).optional().describe("The blobs that the result names."),
  failure: z.object({ reason: z.string(), message: z.string() }).optional(),
});

export const StageResultLine = z.discriminatedUnion("kind", [StageLine, ResultLine]);

export const resultsTasksMax = 1_000_000;

export const resultsOfStage = endpoint({
  method: "GET",
  path: "/v1/jobs/{job}/stages/{stage}/results",
  action: "work.read",
  about:
    "The results of a stage: a line about the stage, then one for each task, in order. While the stage runs, its " +
    "tasks as they are; those of an array when it has ended. An answer never mixes two generations.",
  params: params.extend({ stage: z.string().min(1).max(200).describe("The stage's name.") }),
  query: z.object({
    generation: z.coerce.number().int().min(1).optional().describe("Of this generation; left out: of the newest."),
    from: z.coerce
      .number()
      .int()
      .min(0)
      .max(resultsTasksMax)
      .default(0)
      .describe("Leaves out so many tasks, the first ones."),
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .max(resultsTasksMax)
      .default(resultsTasksMax)
      .describe("How many tasks at most."),
  }),
  answer: lines(StageResultLine),
});

export const followJob = endpoint({
  method: "GET",
  path: "/v1/jobs/{job}/follow",
  action: "work.read",
  about: "Sends what happens to a job and, with output=true, what its tasks print, until it has ended.",
  params,
  query: z.object({ output: Flag.optional() }),
  answer: events(JobFollowed),
});

export const whyJob = endpoint({
  method: "GET",
  path: "/v1/jobs/{job}/why",
  action: "work.read",
  about: "Says what each unfinished task of a job waits for.",
  params,
  query: z.object({
    task: z.string().max(400).optional().describe("Only this task: its id, or its stage and key as stage/key."),
  }),
  answer: json(
    z.object({
      tasks: z.array(
        z.object({
          task: z.string(),
          stage: z.string(),
          key: z.string(),
          phase: z.string(),
          because: z.looseObject({ kind: z.string() }),
          says: z.string().describe("The same, for people."),
          checkpoint: z
            .object({ token: z.number(), agoMs: z.number() })
            .optional()
            .describe("Where the next attempt goes on."),
          failures: z.record(z.string(), z.number()).optional().describe("How its attempts failed: counts by reason."),
          pending: z.array(z.string()).optional().describe("Signals that it has not received yet: their names."),
          second: z.string().optional().describe("Who runs its second attempt, while the first one takes long."),
        }),
      ),
      lines: z.array(z.string()).describe("What the job's door adds, for people."),
    }),
  ),
});

export const cancelJob = endpoint({
  method: "POST",
  path: "/v1/jobs/{job}/cancel",
  action: "work.cancel",
  about:
    "Cancels a job: running tasks are stopped, waiting ones never start. Stages that run however the others end " +
    "(clean-up, rollback) still get their turn, within a grace.",
  params,
  body: jsonBody(
    z.strictObject({
      reason: z.string().max(1_000).default(""),
      hard: z.boolean().default(false).describe("Without that grace; also for a job that is being cancelled already."),
      stage: z.string().max(200).optional().describe("Cancels only this stage."),
      graceMs: z.int().min(0).max(3_024_000_000).optional().describe("The grace; otherwise as the job was submitted."),
    }),
  ),
  answer: json(z.object({ job: JobId, phase: z.enum(jobPhases) }), 202),
});

export const signalJob = endpoint({
  method: "POST",
  path: "/v1/jobs/{job}/signal",
  action: "work.signal",
  about: "Sends a signal to a stage that waits for one, such as approve.",
  params,
  body: jsonBody(
    z.strictObject({
      stage: z.string().max(200),
      name: z.string().min(1).max(200),
      payload: z.string().max(16_384).default(""),
      id: z.string().max(200).optional().describe("The same id counts once, however often it is sent."),
    }),
  ),
  answer: json(z.object({ job: JobId, recorded: z.boolean() })),
});

export const jobsEndpoints = [
  listJobs,
  countJobs,
  submitJob,
  watchJobs,
  showJob,
  watchJob,
  logsOfJob,
  logOfTask,
  resultsOfStage,
  followJob,
  whyJob,
  cancelJob,
  signalJob,
  rerunJob,
] as const;

/** The event feed under /v1/events: every transition of jobs, stages, tasks and steps, in order. */
import { z } from "zod";
import { endpoint, events, json, many } from "#http/endpoint.ts";

const tags = z.record(z.string(), z.string());

/** One transition. docs/reference/events.md is made from it. */
export const EventItem = z.object({
  id: z.string().describe("The same transition always has the same id: with it, what comes twice is recognised."),
  kind: z.enum(["job", "stage", "task", "step"]).describe("What changed."),
  change: z.string().describe("What happened to it; the table of changes lists them. New ones may be added."),
  at: z.string().describe("When, by the shard's clock; RFC 3339 with milliseconds."),
  tenant: z.string(),
  job: z.string().describe("The job that it belongs to."),
  door: z.string().describe("The door that the job came through: build, ci, batch, deploy, shell."),
  name: z.string().describe("The job's name."),
  tags: tags.optional().describe("The job's tags, if it has any."),
  number: z.number().optional().describe("The job's number in its series, if it took one."),
  phase: z.string().describe("Of the job, stage or task after the change; a step's status."),
  reason: z.string().optional().describe("Why, up to 1,000 characters."),
  stage: z
    .object({
      index: z.number(),
      name: z.string(),
      generation: z.number().describe("Grows when lost results are made again."),
      tasks: z.number().describe("How many tasks the stage has, as far as they are planned."),
      done: z.number(),
      failed: z.number(),
      signal: z.string().optional().describe("The name of the signal that arrived."),
    })
    .optional()
    .describe("The stage; for tasks and steps, theirs."),
  task: z
    .object({
      id: z.string(),
      key: z.string().describe("The task's name within its stage."),
      generation: z.number(),
      planning: z.literal(true).optional().describe("It decides what the stage's tasks are."),
      attempt: z.number().optional().describe("The claim's token, which grows with every attempt in the shard."),
      executor: z.string().optional().describe("Who runs the attempt; when it begins."),
      outcome: z.string().optional().describe("How the attempt ended."),
      next: z.string().optional().describe("What becomes of the task: ready, retry, fail, cancel, nothing."),
    })
    .optional()
    .describe("The task; for steps, theirs."),
  step: z.object({ index: z.number(), name: z.string() }).optional(),
});

export type EventItem = z.output<typeof EventItem>;

/** Every change, by kind, for the reference. */
export const changes = [
  ["job", "submitted", "The job was recorded."],
  ["job", "lock-queued, lock-granted", "It waits for its lock; it has it."],
  ["job", "cancelling", "It is being cancelled; what runs is asked to stop."],
  ["job", "ended", "It has ended: SUCCEEDED, FAILED or CANCELLED."],
  ["stage", "ready", "Everything that it needs has ended: it is planned next, or runs."],
  ["stage", "planned", "Its tasks are known."],
  ["stage", "lock-queued, lock-granted", "It waits for its lock; it has it."],
  ["stage", "signalled", "A signal arrived; `stage.signal` is its name."],
  ["stage", "reopened", "A lost result is made again, in a new generation."],
  ["stage", "rest-failed", "No executor took the next tasks of an array in time: those not begun have failed."],
  ["stage", "cancelling", "It alone is being cancelled."],
  ["stage", "ended", "COMPLETED, FAILED, SKIPPED or CANCELLED."],
  ["task", "ready", "It may run: at first, and again after a failed attempt. Tasks of arrays begin with `claimed`."],
  ["task", "claimed, started", "An executor has it; it runs. Mostly it starts at once, and only `started` comes."],
  ["task", "checkpointed", "The attempt recorded how far it is."],
  ["task", "committed", "Its result is recorded: SUCCEEDED."],
  ["task", "reused", "An earlier job's result was taken for it."],
  ["task", "attempt-ended", "An attempt ended without a result; `task.next` says what follows."],
  ["task", "failed", "It will not be tried again: FAILED."],
  ["task", "waiting", "The plan waits for a time or a signal."],
  ["task", "speculated", "A second attempt may run besides the first."],
  ["task", "invalidated", "Its result was lost and is made again."],
  ["task", "cancelled", "It ended with its stage, without a result. Told when the stage ends."],
  ["step", "reported", "A step of a running task began or ended; `phase` is its status."],
] as const;

const filters = {
  kind: many(z.enum(["job", "stage", "task", "step"]), 4, "Only of these kinds; left out: all."),
  door: many(z.string().max(64), 16, "Only of these doors; left out: all."),
  tag: many(
    z
      .string()
      .max(300)
      .regex(/^[^=]+=/, "write name=value"),
    16,
    "Only of jobs with this tag, as name=value.",
  ),
  job: z.string().max(100).optional().describe("Only of this job."),
  from: z
    .enum(["now", "oldest"])
    .optional()
    .describe("Where to begin without a cursor: with what happens next, or with the oldest event that is kept."),
} as const;

const cursor = z.string().max(16_384);

export const listEvents = endpoint({
  method: "GET",
  path: "/v1/events",
  action: "work.read",
  about: "Returns a page of the event feed. With Accept: text/event-stream it is GET /v1/events/watch.",
  query: z.object({
    ...filters,
    cursor: cursor.optional().describe("`next` of the page before; left out: see `from`."),
    limit: z.coerce.number().int().min(1).max(1_000).default(100).describe("How many events at most."),
    wait: z.coerce.number().int().min(0).max(30).default(0).describe("Seconds to wait if there are none."),
  }),
  answer: json(
    z.object({
      items: z.array(EventItem),
      next: z.string().describe("Where to go on, always there: give it as `cursor`. It is good for days."),
    }),
  ),
});

export const watchEvents = endpoint({
  method: "GET",
  path: "/v1/events/watch",
  action: "work.read",
  about:
    "Streams the event feed. Ids are cursors: after a lost connection send the last as Last-Event-ID. " +
    "Events named `cursor` carry only an id; one named `shed` ends the stream of a reader that is too slow.",
  query: z.object({ ...filters, cursor: cursor.optional().describe("Where to go on, as Last-Event-ID.") }),
  answer: events(z.union([EventItem, z.object({ cursor: z.string(), reason: z.string().optional() })])),
});

export const eventEndpoints = [listEvents, watchEvents] as const;

/** Schedules under /v1/schedules: jobs that start at the instants of a cron line. */
import { z } from "zod";
import { pageFields, pageOf } from "#http/cursor.ts";
import { endpoint, json, jsonBody, none } from "#http/endpoint.ts";

const Wanted = z.strictObject({
  cron: z.string().min(1).max(200).describe('Minute, hour, day of month, month, day of week, such as "30 6 * * 1-5".'),
  zone: z.string().min(1).max(100).default("UTC").describe("The IANA time zone of those fields."),
  catchUp: z
    .enum(["skip", "once", "all"])
    .default("once")
    .describe("Of instants at which no node ran: none, the last, or all (the last hundred) get their job."),
  door: z.string().max(64).optional().describe("Which door plans the job; left out: the one that takes command lines."),
  command: z.array(z.string().max(32_768)).min(1).max(1_000).optional().describe("A program and its arguments."),
  document: z.string().max(131_072).optional().describe("A job file: its text as YAML or JSON."),
  priority: z.int().min(-100).max(100).default(0),
});

const Shown = z.object({
  name: z.string(),
  ...Wanted.shape,
  paused: z.boolean(),
  by: z.string().describe("Who made it."),
  next: z.array(z.string()).describe("The next instants; none while it is paused."),
  last: z.object({ at: z.string(), job: z.string() }).optional().describe("The last instant that started a job."),
  trouble: z.object({ at: z.string(), why: z.string() }).optional().describe("Why the last instant started none."),
});

const params = z.object({ name: z.string().min(1).max(200) });
const path = "/v1/schedules/{name}";

export const setSchedule = endpoint({
  method: "PUT",
  path,
  action: "schedule.write",
  about: "Makes a schedule, or replaces it: it starts a job at each instant from now on, once across fail-over.",
  params,
  body: jsonBody(Wanted),
  answer: json(Shown),
});

export const listSchedules = endpoint({
  method: "GET",
  path: "/v1/schedules",
  action: "schedule.read",
  about: "Lists the tenant's schedules, by name.",
  query: z.object({ ...pageFields, prefix: z.string().max(200).optional().describe("Only names that begin with it.") }),
  answer: json(pageOf(Shown)),
});

export const showSchedule = endpoint({
  method: "GET",
  path,
  action: "schedule.read",
  about: "Shows a schedule, and its next instants.",
  params,
  query: z.object({ next: z.coerce.number().int().min(1).max(100).default(5).describe("How many instants.") }),
  answer: json(Shown),
});

export const removeSchedule = endpoint({
  method: "DELETE",
  path,
  action: "schedule.write",
  about: "Removes a schedule; jobs that it started stay.",
  params,
  answer: none,
});

export const pauseSchedule = endpoint({
  method: "POST",
  path: "/v1/schedules/{name}/pause",
  action: "schedule.write",
  about: "Pauses a schedule: its instants pass without a job.",
  params,
  answer: json(Shown),
});

export const resumeSchedule = endpoint({
  method: "POST",
  path: "/v1/schedules/{name}/resume",
  action: "schedule.write",
  about: "Resumes a paused schedule, from now on.",
  params,
  answer: json(Shown),
});

export const scheduleEndpoints = [
  setSchedule,
  listSchedules,
  showSchedule,
  removeSchedule,
  pauseSchedule,
  resumeSchedule,
] as const;

/** What the tasks of a job print, live. */
import { z } from "zod";
import { endpoint, events } from "#http/endpoint.ts";

export const TaskOutput = z.object({
  task: z.string(),
  stage: z.string(),
  key: z.string(),
  stream: z.string().describe("stdout or stderr; output where they are not kept apart."),
  offset: z.int().describe("Bytes that the attempt had printed to this stream before."),
  text: z.string(),
});

export const watchOutput = endpoint({
  method: "GET",
  path: "/v1/jobs/{job}/output",
  action: "work.read",
  about:
    "Sends what the tasks of a job print while they run, and the end of what they printed, until the job has ended.",
  params: z.object({ job: z.string().max(50).describe("The job's id, such as j0-1.") }),
  answer: events(TaskOutput),
});

/** A job's state over a WebSocket, for programs that keep one connection open both ways. */
import { z } from "zod";
import { endpoint, socket } from "#http/endpoint.ts";
import { JobDetails } from "./jobs.ts";

/** "refresh" asks for the job's state now, changed or not. */
export const JobSocketReceives = z.strictObject({ kind: z.literal("refresh") });

/** The job at first and after each change; "end" is the last message, and the node closes the connection after it. */
export const JobSocketSends = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("job"), job: JobDetails }),
  z.object({ kind: z.literal("end") }),
]);

export type JobSocketSends = z.output<typeof JobSocketSends>;

export const jobSocket = endpoint({
  method: "GET",
  path: "/v1/jobs/{job}/socket",
  action: "work.read",
  about: "Opens a WebSocket that sends the job whenever it changes, until it has ended.",
  params: z.object({ job: z.string().max(50).describe("The job's id, such as j0-1.") }),
  answer: socket(JobSocketReceives, JobSocketSends),
});

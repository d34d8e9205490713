/** What a task may call with the token of its claim, and how people read what it left: artifacts of a job. */
import { z } from "zod";
import { pageFields, pageOf } from "#http/cursor.ts";
import { endpoint, json, jsonBody, none } from "#http/endpoint.ts";

const Artifact = z.object({
  name: z.string(),
  sizeBytes: z.int(),
  digest: z.string(),
  task: z.string().describe("The task that put it."),
  attempt: z.int(),
  putAt: z.string(),
  keptUntil: z.string(),
});

const Name = z
  .string()
  .min(1)
  .max(300)
  .regex(/^(?!\.{1,2}(\/|$))[^\p{C}\\]+$/u, "a name has no backslash and no control characters")
  .refine((name) => name.split("/").every((part) => part !== "" && part !== "." && part !== ".."), {
    message: "parts of a name are separated by one slash, and none is . or ..",
  });

export const artifactBytesMax = 16 * 1024 ** 3;
const bytes = { kind: "bytes", contentType: "application/octet-stream" } as const;
const about = "The caller is a task, which calls with $MILLRACE_TOKEN_FILE.";

export const putArtifact = endpoint({
  method: "PUT",
  path: "/v1/task/artifacts/{name+}",
  action: "task.artifacts",
  about: `Keeps the body as an artifact of the caller's job, for 30 days; a second one of the name replaces it. ${about}`,
  params: z.object({ name: Name }),
  body: { kind: "bytes", bytesMax: artifactBytesMax },
  answer: json(Artifact),
});

export const getOwnArtifact = endpoint({
  method: "GET",
  path: "/v1/task/artifacts/{name+}",
  action: "task.artifacts",
  about: `Reads an artifact of the caller's own job. ${about}`,
  params: z.object({ name: Name }),
  answer: bytes,
});

export const listOwnArtifacts = endpoint({
  method: "GET",
  path: "/v1/task/artifacts",
  action: "task.artifacts",
  about: `Lists the artifacts of the caller's own job. ${about}`,
  query: z.object(pageFields),
  answer: json(pageOf(Artifact)),
});

export const reportStep = endpoint({
  method: "POST",
  path: "/v1/task/steps",
  action: "task.report",
  about: `Reports a step of the caller's attempt; one of the same name changes it. ${about}`,
  body: jsonBody(
    z.strictObject({
      name: z.string().min(1).max(200),
      status: z.enum(["started", "succeeded", "failed", "skipped", "progress"]),
    }),
    4_096,
  ),
  answer: none,
});

export const checkpointBytesMax = 4 * 1024 ** 3;

export const putCheckpoint = endpoint({
  method: "PUT",
  path: "/v1/task/checkpoint",
  action: "task.checkpoint",
  about:
    "Records how far the caller's attempt has got: the task's next attempt gets the body as the file that " +
    `$MILLRACE_CHECKPOINT names. The answer comes when it is durable; a second one replaces it. ${about}`,
  body: { kind: "bytes", bytesMax: checkpointBytesMax },
  answer: json(z.object({ digest: z.string(), sizeBytes: z.int() })),
});

const jobParams = { job: z.string().max(50) };

export const getArtifact = endpoint({
  method: "GET",
  path: "/v1/jobs/{job}/artifacts/{name+}",
  action: "work.read",
  about: "Reads an artifact that a task of the job put.",
  params: z.object({ ...jobParams, name: Name }),
  answer: bytes,
});

export const listArtifacts = endpoint({
  method: "GET",
  path: "/v1/jobs/{job}/artifacts",
  action: "work.read",
  about: "Lists the artifacts that tasks of the job put.",
  params: z.object(jobParams),
  query: z.object(pageFields),
  answer: json(pageOf(Artifact)),
});

export const taskEndpoints = [putArtifact, getOwnArtifact, listOwnArtifacts, reportStep, putCheckpoint] as const;
export const artifactEndpoints = [getArtifact, listArtifacts] as const;

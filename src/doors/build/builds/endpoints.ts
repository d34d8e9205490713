/** Builds of many actions over HTTP, for callers without gRPC. */
import { z } from "zod";
import { endpoint, json, jsonBody, lines } from "#http/endpoint.ts";
import { BuildDocument } from "./document.ts";
import { buildLimits } from "./limits.ts";

const params = z.object({ build: z.string().max(100).describe("The build's id, such as j0-1.") });

const ActionState = z.object({
  key: z.string(),
  state: z.string(),
  action: z.string().optional().describe("The action's digest."),
  attempts: z.int(),
  worker: z.string().optional(),
  message: z.string().optional(),
  stdoutStream: z.string().optional().describe("Read it live with ByteStream."),
  stderrStream: z.string().optional(),
});

const BuildState = z.object({
  build: z.string(),
  name: z.string(),
  phase: z.string(),
  reason: z.string().optional(),
  submittedAtMs: z.number(),
  endedAtMs: z.number().optional(),
  counts: z.record(z.string(), z.int()).optional().describe("How many actions are in each state."),
  actions: z.array(ActionState).optional(),
});

export const submitBuild = endpoint({
  method: "POST",
  path: "/v1/builds",
  action: "work.submit",
  about: "Submits a build: a document of actions, their inputs and what they need of each other.",
  query: z.object({ priority: z.coerce.number().int().default(0) }),
  body: jsonBody(BuildDocument, buildLimits.documentBytesMax),
  answer: json(z.object({ build: z.string(), created: z.boolean() }), 201, 200),
  idempotency: "handler",
});

export const listBuilds = endpoint({
  method: "GET",
  path: "/v1/builds",
  action: "work.read",
  about: "Lists builds, newest first.",
  query: z.object({
    limit: z.coerce.number().int().min(0).default(0).describe("How many at most; 0: as many as a page has."),
    cursor: z.string().max(2_000).default("").describe("`cursor` of the page before."),
  }),
  answer: json(z.object({ builds: z.array(BuildState), cursor: z.string().optional() })),
});

export const showBuild = endpoint({
  method: "GET",
  path: "/v1/builds/{build}",
  action: "work.read",
  about: "Shows a build with all of its actions.",
  params,
  answer: json(BuildState),
});

export const watchBuild = endpoint({
  method: "GET",
  path: "/v1/builds/{build}/watch",
  action: "work.read",
  about: "Sends the build and the actions that changed, until it has ended.",
  params,
  answer: lines(BuildState.partial().extend({ changed: z.array(ActionState) })),
});

export const showBuildAction = endpoint({
  method: "GET",
  path: "/v1/builds/{build}/actions/{key+}",
  action: "work.read",
  about: "Shows what an action of a build made and printed.",
  params: params.extend({ key: z.string().max(1_000) }),
  answer: json(
    ActionState.partial().extend({
      exitCode: z.int(),
      outputs: z.array(z.looseObject({ path: z.string() })),
      stdout: z.string().optional(),
      stderr: z.string().optional(),
    }),
  ),
});

export const cancelBuild = endpoint({
  method: "POST",
  path: "/v1/builds/{build}/cancel",
  action: "work.cancel",
  about: "Cancels a build.",
  params,
  query: z.object({ reason: z.string().max(1_000).default("") }),
  answer: json(z.object({ build: z.string(), phase: z.string(), cancelled: z.boolean() })),
});

export const buildsEndpoints = [submitBuild, listBuilds, showBuild, watchBuild, showBuildAction, cancelBuild] as const;

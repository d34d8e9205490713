/** The ledger of effects under /v1/effects: what work does to the world outside, by key. */
import { z } from "zod";
import { pageFields, pageOf } from "#http/cursor.ts";
import { endpoint, json, jsonBody, none } from "#http/endpoint.ts";

const Holder = z.object({ job: z.string(), task: z.string(), token: z.number() });

const Name = z.strictObject({
  name: z.string().min(1).max(200).describe("What is done, such as `deploy/production`: the same in every attempt."),
  isShared: z
    .boolean()
    .default(false)
    .describe("One ledger for all jobs of the tenant, instead of one for this job and its re-runs."),
});

const result = z.string().max(4_096).default("").describe("What it came to: told to attempts that come later.");

const Said = z.object({
  key: z.string(),
  answer: z
    .enum(["go", "done", "unknown", "busy", "accepted", "stale", "not-begun"])
    .describe(
      "go: do it. done: it was done. unknown: an earlier attempt began it and never said how it ended: look at the " +
        "target, or give it the key. busy: another task is at it. stale: a later attempt has taken over.",
    ),
  result: z.string().optional(),
  holder: Holder.optional().describe("With busy and stale: who has it. With unknown: who began it before."),
});

export const beginEffect = endpoint({
  method: "POST",
  path: "/v1/effects:begin",
  action: "effect.write",
  about:
    "Begins an effect, as a task, and says whether it may be done. Being told `unknown` makes the caller its holder.",
  body: jsonBody(Name),
  answer: json(Said),
});

export const commitEffect = endpoint({
  method: "POST",
  path: "/v1/effects:commit",
  action: "effect.write",
  about: "Says that the effect was done; refused (`stale`) once a later attempt has begun it.",
  body: jsonBody(Name.extend({ result })),
  answer: json(Said),
});

export const undoEffect = endpoint({
  method: "POST",
  path: "/v1/effects:undo",
  action: "effect.write",
  about: "Says that nothing was done: the next who begins may go.",
  body: jsonBody(Name),
  answer: json(Said),
});

export const askEffect = endpoint({
  method: "POST",
  path: "/v1/effects:ask",
  action: "effect.write",
  about: "Asks a person whether the effect was done; begin it again to hear what was decided.",
  body: jsonBody(Name),
  answer: json(Said),
});

const Shown = z.object({
  key: z.string(),
  phase: z.enum(["begun", "done", "free"]),
  holder: Holder,
  at: z.string().describe("When it last changed."),
  begins: z.number().describe("How often it was begun."),
  isUnknown: z.boolean(),
  needsDecision: z.boolean(),
  result: z.string().optional(),
  decidedBy: z.string().optional(),
});

export const listEffects = endpoint({
  method: "GET",
  path: "/v1/effects",
  action: "effect.read",
  about: "Lists effects by key: `job/<job>/<name>`, and `shared/<name>`.",
  query: z.object({
    ...pageFields,
    prefix: z.string().max(300).optional().describe("Only keys that begin with it."),
    undecided: z.enum(["true", "false"]).optional().describe("true: only those that wait for a person."),
  }),
  answer: json(pageOf(Shown)),
});

const params = z.object({ key: z.string().min(1).max(500) });
const path = "/v1/effects/{key+}";

export const showEffect = endpoint({
  method: "GET",
  path,
  action: "effect.read",
  about: "Shows one effect.",
  params,
  answer: json(Shown),
});

export const decideEffect = endpoint({
  method: "PUT",
  path,
  action: "effect.decide",
  about: "Says, as a person, whether an effect that was begun and never ended was done.",
  params,
  body: jsonBody(
    z.strictObject({
      wasDone: z.boolean(),
      result,
      begins: z
        .int()
        .min(1)
        .optional()
        .describe("How often it was begun when the person looked: refused (`stale`) if it was begun again since."),
    }),
  ),
  answer: json(Said),
});

export const removeEffect = endpoint({
  method: "DELETE",
  path,
  action: "effect.decide",
  about:
    "Removes an effect that has ended: who begins it again may go. Those of jobs go with the last job that can ask.",
  params,
  answer: none,
});

export const effectEndpoints = [
  beginEffect,
  commitEffect,
  undoEffect,
  askEffect,
  listEffects,
  showEffect,
  decideEffect,
  removeEffect,
] as const;

/** Twirp over JSON, as the clients of artifacts and caches speak it: POST, one object in, one out. */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { bodyBytes, bodyIdleMsDefault, parseJsonBody } from "#http/body.ts";
import { asProblem, Problem } from "#http/problem.ts";
import type { JobIdentity } from "./job-token.ts";
import { requestBytesMax } from "./limits.ts";

/** Clients write 64-bit numbers as texts, and either spelling of a name. */
export const Int64 = z
  .union([z.string().regex(/^\d{1,15}$/), z.number().int().nonnegative()])
  .transform(Number)
  .pipe(z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER));

/** Wrapped values (google.protobuf.StringValue) are bare in JSON, or null. */
export const Text = z.string().max(4_096);
export const OptionalText = Text.nullish().transform((text) => text ?? undefined);

export type TwirpCall = { readonly job: JobIdentity; readonly origin: string };

export type TwirpMethod = (call: TwirpCall, given: unknown) => Promise<object>;

export const twirpMethod =
  <S extends z.ZodType>(schema: S, run: (call: TwirpCall, given: z.output<S>) => Promise<object>): TwirpMethod =>
  (call, given) =>
    run(call, schema.parse(given));

const codes: Readonly<Record<number, string>> = {
  400: "invalid_argument",
  401: "unauthenticated",
  403: "permission_denied",
  404: "not_found",
  409: "already_exists",
  413: "invalid_argument",
  429: "resource_exhausted",
  503: "unavailable",
};

const Any = z.record(z.string(), z.unknown());

export async function readTwirp(request: Request, clock: Clock): Promise<unknown> {
  if (request.method !== "POST") throw new Problem(405, "only POST is answered here", { headers: { allow: "POST" } });
  const bytes = await bodyBytes(request, { bytesMax: requestBytesMax, idleMs: bodyIdleMsDefault }, clock);
  const given = parseJsonBody(bytes, Any);
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [snake(name), value]));
}

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The body is JSON always: clients read it whatever the status is. */
export function twirpFailure(error: unknown): { readonly response: Response; readonly isOurs: boolean } {
  const { problem, isOurs } = asProblem(error instanceof z.ZodError ? new Problem(400, firstIssue(error)) : error);
  const body = { code: codes[problem.status] ?? "internal", msg: problem.message };
  return { response: Response.json(body, { status: problem.status, headers: problem.headers }), isOurs };
}

function firstIssue({ issues: [first] }: z.ZodError): string {
  return `${first?.path.join(".") ?? "body"}: ${first?.message ?? "not valid"}`;
}

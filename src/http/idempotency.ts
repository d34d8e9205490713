/**
 * Idempotency-Key: a client that did not hear the answer asks again with the same key, and gets the first answer, not
 * a second effect.
 *
 * I1. A key belongs to one caller's tenant and name, one endpoint and one body; with another body it is refused.
 * I2. While the first request is still being handled, a second one is told to come back, never handled beside it.
 * I3. Only answers that mean "done" or "never" are kept. After a failure of ours (5xx, 429) the key is free again.
 */
import { createHash } from "node:crypto";
import { Problem } from "./problem.ts";

export type KeptAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** `key` is a digest of bounded length; answers are counted by tenant. */
export type AnswerKey = { readonly tenant: string; readonly key: string };

/** Where answers are kept. `request` is a digest of what was asked. */
export interface KeptAnswers {
  /** Takes the key for a request, or says what it was used for. An abandoned claim frees itself after a while. */
  begin(key: AnswerKey, request: string): Promise<Begun>;
  finish(key: AnswerKey, claim: string, answer: KeptAnswer): Promise<void>;
  abandon(key: AnswerKey, claim: string): Promise<void>;
}

export type Begun =
  | { readonly kind: "new"; readonly claim: string }
  | { readonly kind: "answered"; readonly answer: KeptAnswer }
  | { readonly kind: "busy" }
  | { readonly kind: "other" };

const keyPattern = /^[\x21-\x7e]{1,255}$/;

export const keptBodyBytesMax = 64 * 1024;

export type KeyedRequest = {
  readonly tenant: string;
  readonly principal: string;
  readonly endpoint: string;
  readonly path: string;
  readonly body: Uint8Array;
};

/** Runs `handle` at most once for a key, and replays its answer. */
export async function once(
  kept: KeptAnswers,
  header: string,
  request: KeyedRequest,
  handle: () => Promise<Response>,
  report: (error: unknown) => void,
): Promise<Response> {
  if (!keyPattern.test(header)) throw new Problem(400, "idempotency-key: 1 to 255 printable characters without spaces");
  const { tenant } = request;
  const key = { tenant, key: digest([tenant, request.principal, header]) };
  const what = digest([request.endpoint, request.path, request.body]);
  const begun = await kept.begin(key, what);
  if (begun.kind === "answered") return replay(begun.answer);
  if (begun.kind === "busy")
    throw new Problem(409, "idempotency-key: the first request with this key is still being handled", {
      headers: { "retry-after": "1" },
    });
  if (begun.kind === "other")
    throw new Problem(422, "idempotency-key: this key was used for another request; take a new one");
  let response: Response;
  try {
    response = await handle();
  } catch (error) {
    await kept.abandon(key, begun.claim).catch(report);
    throw error;
  }
  if (response.status >= 500 || response.status === 429) {
    await kept.abandon(key, begun.claim).catch(report);
    return response;
  }
  const body = await response.text();
  const answer: KeptAnswer = { status: response.status, headers: Object.fromEntries(response.headers), body };
  // The request had its effect: failing to keep its answer must not turn it into an error.
  const isKept = Buffer.byteLength(body) <= keptBodyBytesMax;
  await (isKept ? kept.finish(key, begun.claim, answer) : kept.abandon(key, begun.claim)).catch(report);
  return new Response(bodyAllowed(answer.status) ? body : null, { status: answer.status, headers: answer.headers });
}

const replay = ({ status, headers, body }: KeptAnswer): Response =>
  new Response(bodyAllowed(status) ? body : null, { status, headers: { ...headers, "idempotency-replayed": "true" } });

const bodyAllowed = (status: number): boolean => status !== 204 && status !== 304;

/** Lengths go in with the parts, so that no two lists of parts look alike. */
function digest(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts)
    hash.update(`${typeof part === "string" ? Buffer.byteLength(part) : part.length}:`).update(part);
  return hash.digest("hex");
}

/** Failures over HTTP, as problem+json (RFC 9457). A handler throws a Problem; everything else becomes one here. */
import { isFault, type Fault, type FaultCode } from "#base/fault.ts";
import type { Refusal } from "#access/refusal.ts";
import { refusalStatus } from "#access/refusal-status.ts";

export type ProblemOptions = {
  readonly headers?: Readonly<Record<string, string>>;
  /** Further members of the JSON object. */
  readonly more?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
};

export class Problem extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly more: Readonly<Record<string, unknown>>;

  constructor(status: number, title: string, { headers = {}, more = {}, cause }: ProblemOptions = {}) {
    super(title, cause === undefined ? undefined : { cause });
    this.name = "Problem";
    this.status = status;
    this.headers = headers;
    this.more = more;
  }
}

export const problemType = "application/problem+json";

export const problemResponse = ({ status, message, headers, more }: Problem): Response =>
  Response.json({ status, title: message, ...more }, { status, headers: { ...headers, "content-type": problemType } });

export function refusalProblem(refusal: Refusal): Problem {
  const { http, challenge } = refusalStatus(refusal);
  return new Problem(http, refusal.message, {
    ...(challenge !== undefined && { headers: { "www-authenticate": challenge } }),
  });
}

const retryLater = { "retry-after": "5" } as const;

const statuses = {
  "not-found": [404, {}],
  stale: [409, {}],
  invalid: [400, {}],
  exhausted: [429, retryLater],
  unavailable: [503, retryLater],
  "unknown-outcome": [503, retryLater],
  corrupt: [500, {}],
  internal: [500, {}],
} as const satisfies Record<FaultCode, readonly [number, Readonly<Record<string, string>>]>;

/**
 * The caller sees the facts of its own mistake; facts about this machine stay in the log. `isOurs` is true for what
 * the operator has to look at.
 */
export function asProblem(error: unknown): { readonly problem: Problem; readonly isOurs: boolean } {
  if (error instanceof Problem) return { problem: error, isOurs: error.status >= 500 };
  if (!isFault(error)) return { problem: internal(error), isOurs: true };
  const [status, headers] = statuses[error.code];
  if (status === 500) return { problem: internal(error), isOurs: true };
  return { problem: new Problem(status, titleOf(error), { headers, cause: error }), isOurs: false };
}

const internal = (cause: unknown): Problem =>
  new Problem(500, "internal error; the node's log has the details", { cause });

const titleOf = (fault: Fault): string =>
  fault.code === "invalid" || fault.code === "not-found" ? fault.message : `${fault.doing}: ${fault.code}`;

/** A refused request, with the status that says why. Each protocol has its own form for the body. */
import { isFault, type Fault, type FaultCode } from "#base/fault.ts";
import { Problem } from "#http/problem.ts";
import { refusalStatus } from "#access/refusal-status.ts";
import type { Refusal } from "#access/refusal.ts";
import type { BuildAction, BuildCaller } from "#doors/build/caller.ts";

export class HttpRefusal extends Problem {
  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}, cause?: unknown) {
    super(status, message, { headers, cause });
    this.name = "HttpRefusal";
  }
}

const comeBack = { "retry-after": "5" } as const;

const statuses = {
  "not-found": [404, {}],
  stale: [409, {}],
  invalid: [400, {}],
  exhausted: [507, comeBack],
  unavailable: [503, comeBack],
  "unknown-outcome": [503, comeBack],
  corrupt: [500, {}],
  internal: [500, {}],
} as const satisfies Record<FaultCode, readonly [number, Readonly<Record<string, string>>]>;

/** Undefined for an internal error, which is not an answer. */
export function asRefusal(error: unknown): Problem | undefined {
  if (error instanceof Problem) return error;
  if (!isFault(error)) return undefined;
  if (error.code === "exhausted") return exhausted(error);
  const [status, headers] = statuses[error.code];
  return new HttpRefusal(status, messageOf(error), headers, error);
}

/** 429 when the caller's own limit is reached, 413 when waiting does not help, 507 when the store is full. */
function exhausted(fault: Fault): HttpRefusal {
  const { retryAfterMs, limit, why } = fault.facts;
  const message = typeof why === "string" ? why : "the store is full";
  if (limit !== undefined && retryAfterMs === undefined) return new HttpRefusal(413, message, {}, fault);
  const seconds = typeof retryAfterMs === "number" ? Math.ceil(retryAfterMs / 1_000) : 5;
  const headers = { "retry-after": String(seconds) };
  return new HttpRefusal(limit === undefined ? 507 : 429, message, headers, fault);
}

/** What any caller may read: facts about this machine's failures are only for the log. */
function messageOf(fault: Fault): string {
  if (fault.code === "invalid") return fault.message;
  return `${fault.doing}: ${fault.code}`;
}

export function requireFor(caller: BuildCaller, ...actions: readonly BuildAction[]): void {
  for (const action of actions) {
    const refusal = caller.refusal(action);
    if (refusal) throw refusedCall(refusal);
  }
}

/** Some build tools know only user names and passwords, and send the token as the password. */
export function refusedCall(refusal: Refusal): HttpRefusal {
  const { http, challenge } = refusalStatus(refusal);
  const headers = challenge === undefined ? {} : { "www-authenticate": `${challenge}, Basic realm="millrace"` };
  return new HttpRefusal(http, refusal.message, headers);
}

export const methodNotAllowed = (allow: string): HttpRefusal =>
  new HttpRefusal(405, `only ${allow} can be asked of this address`, { allow });

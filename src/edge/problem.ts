/** Errors over plain HTTP, as RFC 9457 has them. */
import { refusalStatus } from "#access/refusal-status.ts";
import type { Refusal } from "#access/refusal.ts";

export const problem = (status: number, title: string, headers: Readonly<Record<string, string>> = {}): Response =>
  Response.json({ status, title }, { status, headers: { "content-type": "application/problem+json", ...headers } });

export function refused(refusal: Refusal): Response {
  const { http, challenge } = refusalStatus(refusal);
  return problem(http, refusal.message, challenge === undefined ? {} : { "www-authenticate": challenge });
}

/** Errors of the edge's own routes, as problem+json. */
import type { Refusal } from "#access/refusal.ts";
import { Problem, problemResponse, refusalProblem } from "#http/problem.ts";

export const problem = (status: number, title: string, headers: Readonly<Record<string, string>> = {}): Response =>
  problemResponse(new Problem(status, title, { headers }));

export const refused = (refusal: Refusal): Response => problemResponse(refusalProblem(refusal));

/**
 * Whether a job may begin that deploys to an environment, or whose run waits for a person (CI-63). The stage of such a
 * job waits in its plan; a review is a signal to it. Pure.
 *
 * GA1 A job begins only when each of its environments let it in, whatever else became of the run.
 * GA2 A person counts once for an environment and a stage, and only if the rules name it; what it said first counts.
 */
import { z } from "zod";
import type { PlanInputs } from "#kernel/read/query.ts";
import { createHash } from "node:crypto";
import { patternsAccept } from "#doors/ci/workflow/trigger/pattern.ts";

export const signals = { review: "ci.review", asked: "ci.asked" } as const;

/** What stands for the run itself where people are asked about all of it. */
export const wholeRun = "";

/** Of one environment, as they are now. */
export type Rules = {
  readonly environment: string;
  /** Who may review; empty: all who may approve. */
  readonly reviewers: readonly string[];
  readonly approvals: number;
  readonly waitMs: number;
  /** Patterns of branches and tags that may deploy; empty: all. */
  readonly branches: readonly string[];
  readonly preventsSelfReview: boolean;
};

const Review = z.object({
  environment: z.string(),
  person: z.string(),
  state: z.enum(["approved", "rejected"]),
  comment: z.string(),
});
export type Review = z.output<typeof Review> & { readonly atMs?: number | undefined };

export type Gate =
  | { readonly kind: "open" }
  | { readonly kind: "wait"; readonly forMs: number }
  | { readonly kind: "refused"; readonly reason: string };

export type GateFacts = {
  readonly rules: readonly Rules[];
  readonly reviews: readonly Review[];
  /** `main`, or the tag's name. */
  readonly ref: string;
  readonly actor: string;
  /** When the stage first asked. */
  readonly sinceMs: number;
  readonly nowMs: number;
};

/** Rules may change while a job waits: it looks again at least this often. */
const lookAgainMs = 3_600_000;

export function gateOf({ rules, reviews, ref, actor, sinceMs, nowMs }: GateFacts): Gate {
  let forMs = 0;
  for (const rule of rules) {
    const { environment, branches, waitMs } = rule;
    if (branches.length > 0 && !patternsAccept(branches, ref))
      return refused(`"${ref}" is not allowed to deploy to ${environment}: its rules name ${branches.join(", ")}`);
    const own = reviews.filter((review) => isSame(review.environment, environment) && mayReview(rule, review, actor));
    const no = firstOfEach(own).find(({ state }) => state === "rejected");
    if (no) return refused(`${titleOf(environment)} was rejected by ${no.person}${no.comment && `: ${no.comment}`}`);
    if (approvedBy(rule, reviews, actor).length < rule.approvals) forMs = Math.max(forMs, lookAgainMs);
    forMs = Math.max(forMs, sinceMs + waitMs - nowMs);
  }
  return forMs > 0 ? { kind: "wait", forMs: Math.min(forMs, lookAgainMs) } : { kind: "open" };
}

const refused = (reason: string): Gate => ({ kind: "refused", reason });

export const titleOf = (environment: string): string =>
  environment === wholeRun ? "the run" : `the deployment to ${environment}`;

/** The people whose approval counts, each once. */
export function approvedBy(rule: Rules, reviews: readonly Review[], actor: string): readonly string[] {
  const own = reviews.filter((one) => isSame(one.environment, rule.environment) && mayReview(rule, one, actor));
  return firstOfEach(own).flatMap(({ person, state }) => (state === "approved" ? [person] : []));
}

export const mayReview = (
  { reviewers, preventsSelfReview }: Rules,
  { person }: Pick<Review, "person">,
  actor: string,
): boolean => (reviewers.length === 0 || reviewers.includes(person)) && !(preventsSelfReview && person === actor);

function firstOfEach(reviews: readonly Review[]): readonly Review[] {
  const seen = new Map<string, Review>();
  for (const review of reviews) if (!seen.has(review.person)) seen.set(review.person, review);
  return [...seen.values()];
}

const isSame = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

/** The reviews that a stage has received, in their order. */
export const reviewsIn = (received: PlanInputs["signals"]): readonly Review[] =>
  received.flatMap(({ name, payload, atMs }) => {
    if (name !== signals.review) return [];
    const read = Review.safeParse(JSON.parse(payload));
    return read.success ? [{ ...read.data, atMs }] : [];
  });

/** The same for every review of one person, so that the engine keeps the first. */
export const reviewId = ({ environment, person }: Pick<Review, "environment" | "person">): string =>
  createHash("sha256")
    .update(JSON.stringify([environment.toLowerCase(), person]))
    .digest("hex")
    .slice(0, 40);

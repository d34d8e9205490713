/** Whether a claim is live, as its task's shard says: for credentials that end with their claim. */
import { isFault } from "#base/fault.ts";
import type { Clock } from "#base/clock.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { WorkClient } from "./client.ts";

export type ClaimAsked = {
  readonly tenant: string;
  readonly task: string;
  /** The token of the claim. */
  readonly claim: number;
  /** Left out: whichever job the task is of. */
  readonly job?: string | undefined;
};

export type LiveClaims = (asked: ClaimAsked) => Promise<boolean>;

/** An answer counts for this long: tasks call often, and a claim's end is noticed by its worker first. */
const liveForMs = 1_000;
const remembered = 10_000;

/** Asks the task's shard, and remembers for a moment that a claim was live. Throws while the shard cannot be asked. */
export function liveClaims(client: Pick<WorkClient, "task">, clock: Pick<Clock, "monotonicMs">): LiveClaims {
  const until = new Map<string, number>();
  return async (asked) => {
    const { tenant, job = "", task, claim } = asked;
    const key = `${tenant}/${job}/${task}/${claim}`;
    const askedMs = clock.monotonicMs();
    if ((until.get(key) ?? 0) > askedMs) return true;
    until.delete(key);
    if (!(await isClaimed(client, asked))) return false;
    if (until.size >= remembered) until.clear();
    until.set(key, askedMs + liveForMs);
    return true;
  };
}

async function isClaimed(client: Pick<WorkClient, "task">, { task, claim, job }: ClaimAsked): Promise<boolean> {
  try {
    const { claims, jobId } = await client.task(task);
    if (job !== undefined && job !== jobId) return false;
    return claims.some(({ token, expiresInMs }) => token === claim && expiresInMs > 0);
  } catch (error) {
    if (isRejected(error) || isFault(error, "not-found") || isFault(error, "invalid")) return false;
    throw error;
  }
}

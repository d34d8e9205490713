/** What tasks of this node, and of executors elsewhere, may call it with: a token that ends with their claim. */
import { isFault } from "#base/fault.ts";
import type { ClaimOf } from "#access/principal.ts";
import { issueGrant } from "#issuer/grant-token.ts";
import type { Issuer } from "#issuer/issuer.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { TaskAccess } from "#worker/runner.ts";

/** After the longest attempt, for what is still being brought back. */
const marginMs = 600_000;

export type TaskAccessPorts = {
  readonly issuer: Issuer;
  /** The node's address, as a task of this machine reaches it. */
  readonly origin: () => string | undefined;
  readonly log: (line: string) => void;
};

/** Its roles and its tenant come from its claim, and it has no others. */
export const taskToken = (issuer: Issuer, claim: ClaimOf, forMs: number) =>
  issueGrant(issuer, { name: `task:${claim.task}`, tenant: claim.tenant, roles: ["task"] }, { claim }, forMs);

export function taskAccess({ issuer, origin, log }: TaskAccessPorts) {
  let isSaid = false;
  return async ({ tenant, jobId, taskId, attempt, token, attemptMs }: Granted): Promise<TaskAccess | undefined> => {
    const server = origin();
    if (server === undefined) return undefined;
    try {
      const claim = { tenant, job: jobId, task: taskId, attempt, token };
      return { server, token: (await taskToken(issuer, claim, attemptMs + marginMs)).token };
    } catch (error) {
      if (!isFault(error)) throw error;
      if (!isSaid) log(`tasks get no token of their own: ${error.message}`);
      isSaid = true;
      return undefined; // most tasks do not need one
    }
  };
}

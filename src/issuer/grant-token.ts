/**
 * Tokens for the cluster's own calls: what their holder is granted, and what they are bound to. Bound to a claim, a
 * token dies with it (IS4); bound to a worker, it dies when the worker is removed.
 */
import { z } from "zod";
import { isFault } from "#base/fault.ts";
import { grantProblem, principal, roles, type ClaimOf, type Grant, type Principal } from "#access/principal.ts";
import { unauthenticated, type Unauthenticated } from "#access/refusal.ts";
import type { Issuer } from "./issuer.ts";

/** The audience of calls to the cluster: a token for anybody else is refused here. */
export const clusterAudience = "millrace";

/** For how long an answer that a claim is live, or that a worker is known, is believed. */
export const liveForMs = 1_000;
const workerKnownMs = 5_000;

const Text = z.string().min(1).max(300);
const Claims = z.object({
  sub: Text,
  millrace: z.strictObject({
    tenant: Text,
    roles: z.array(z.enum(roles)).max(roles.length),
    pools: z.array(Text).max(100).optional(),
    labels: z.array(Text).max(100).optional(),
    claim: z.strictObject({ job: Text, task: Text, attempt: z.int(), token: z.int() }).optional(),
    worker: Text.optional(),
  }),
});

export type Bindings = {
  readonly isLive: (claim: ClaimOf) => Promise<boolean>;
  readonly isWorker: (tenant: string, worker: string) => Promise<boolean>;
};

export type Bound = { readonly claim: ClaimOf } | { readonly worker: string };

export async function issueGrant(
  issuer: Pick<Issuer, "issue">,
  { name, tenant, roles: granted, pools, labels }: Grant,
  bound: Bound,
  forMs: number,
): Promise<{ readonly token: string; readonly untilMs: number }> {
  const { tenant: _tenant, ...claim } = "claim" in bound ? bound.claim : { tenant: "" };
  const millrace = {
    tenant,
    roles: granted,
    ...(pools && { pools }),
    ...(labels && { labels }),
    ...("claim" in bound ? { claim } : bound),
  };
  return await issuer.issue({ audience: clusterAudience, subject: name, forMs, claims: { millrace } });
}

type Opened =
  | { readonly ok: true; readonly principal: Principal; readonly untilMs: number; readonly verifiedForMs: number }
  | { readonly ok: false; readonly refusal: Unauthenticated };

/** Verifies a token of the cluster, and asks whether what it is bound to still is. */
export const grantOpener =
  (issuer: Pick<Issuer, "verify">, bindings: Bindings) =>
  async (token: string): Promise<Opened> => {
    const verified = await issuer.verify(token, clusterAudience);
    if (!verified.ok) return unauthenticated(verified.reason);
    const { success, data } = Claims.safeParse(verified.claims);
    if (!success) return unauthenticated("claims-insufficient");
    const { tenant, claim: named, worker, ...granted } = data.millrace;
    const grant = { ...granted, tenant, name: data.sub };
    // Nothing is issued that is bound to nothing, or that gives more than a task's or a worker's rights.
    const role = named === undefined ? "executor" : "task";
    const isBound = (named === undefined) !== (worker === undefined);
    if (!isBound || grant.roles.length !== 1 || grant.roles[0] !== role || grantProblem(grant) !== undefined)
      return unauthenticated("claims-insufficient");
    const who = principal(grant, "issued");
    const { untilMs } = verified;
    try {
      if (worker !== undefined)
        return (await bindings.isWorker(tenant, worker))
          ? { ok: true, principal: { ...who, worker }, untilMs, verifiedForMs: workerKnownMs }
          : unauthenticated("worker-removed");
      const claim: ClaimOf = { tenant, ...(named as Omit<ClaimOf, "tenant">) };
      if (!(await bindings.isLive(claim))) return unauthenticated("claim-over");
      return { ok: true, principal: { ...who, claim }, untilMs, verifiedForMs: liveForMs };
    } catch (error) {
      if (isFault(error)) return unauthenticated("binding-unclear");
      throw error;
    }
  };

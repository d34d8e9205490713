/** What each command is answered with when it is not refused. */
import type { CommandKind } from "./command.ts";
import type { Grant, HeldClaim, JobPhase, Plan } from "./model.ts";

export type Replies = {
  submit: { readonly job: number; readonly created: boolean; readonly merged: boolean };
  leave: { readonly left: boolean };
  cancel: { readonly phase: JobPhase };
  signal: { readonly recorded: boolean };
  reserve: { readonly grants: readonly Grant[] };
  start: { readonly leaseMs: number };
  renew: { readonly held: readonly HeldClaim[]; readonly lost: readonly { task: number; token: number }[] };
  report: { readonly steps: number };
  /** Not committed, though not refused: the task was being cancelled, and this ended its claim. */
  commit: { readonly committed: boolean; readonly generation: number };
  /** The plan that counts: the first one recorded for the generation, perhaps another planner's. */
  "record-plan": { readonly recorded: boolean; readonly plan: Plan["kind"] };
  fail: { readonly retryInMs: number | undefined };
  release: { readonly released: boolean };
  invalidate: { readonly generation: number };
  drain: { readonly draining: boolean };
  resume: { readonly resumed: boolean };
  "set-tenant": { readonly changed: boolean };
  /** `slice` names it, for `holds`. A shard of an older version does not name it. */
  "lend-quota": { readonly slots: number; readonly forMs: number; readonly slice?: number | undefined };
  "take-quota": { readonly slots: number };
  /** False when nothing of the kind was waiting: it has been said before, or the result was invalidated. */
  published: { readonly published: boolean };
  forget: { readonly forgotten: number };
  "take-over": { readonly claims: number };
  tick: { readonly more: boolean; readonly nextDueInMs: number };
};

export type Reply = Replies[CommandKind];

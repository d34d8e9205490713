/** The reply to each command that is not refused. */
import type { CommandKind } from "./command.ts";
import type { Grant, HeldClaim, JobPhase, Plan } from "./model.ts";

export type Replies = {
  submit: {
    readonly job: number;
    readonly created: boolean;
    readonly merged: boolean;
    /** The job's number in its series; undefined without one, and for a known job that has left memory. */
    readonly number?: number | undefined;
  };
  leave: { readonly left: boolean };
  cancel: { readonly phase: JobPhase };
  signal: { readonly recorded: boolean };
  reserve: { readonly grants: readonly Grant[] };
  start: { readonly leaseMs: number };
  renew: { readonly held: readonly HeldClaim[]; readonly lost: readonly { task: number; token: number }[] };
  report: { readonly steps: number };
  /**
   * `committed` is false, without a refusal, when the task was being cancelled: the commit then only ended the claim.
   */
  commit: { readonly committed: boolean; readonly generation: number };
  /** The plan that counts: the first one recorded for the generation, perhaps by another planner. */
  "record-plan": { readonly recorded: boolean; readonly plan: Plan["kind"] };
  fail: { readonly retryInMs: number | undefined };
  checkpoint: { readonly recorded: boolean };
  release: { readonly released: boolean };
  invalidate: { readonly generation: number };
  drain: { readonly draining: boolean };
  resume: { readonly resumed: boolean };
  "set-tenant": { readonly changed: boolean };
  /** `slice` is the number that `holds` refers to. An older shard leaves it out. */
  "lend-quota": { readonly slots: number; readonly forMs: number; readonly slice?: number | undefined };
  "take-quota": { readonly slots: number };
  /** False when there was nothing to publish: the command is a repeat, or the result was invalidated. */
  published: { readonly published: boolean };
  /** False when it is no longer wanted: the command is a repeat, or a result was invalidated. */
  "record-manifest": { readonly recorded: boolean };
  /** False when there was nothing to tell any more: the command is a repeat. */
  notified: { readonly notified: boolean };
  forget: { readonly forgotten: number };
  "take-over": { readonly claims: number };
  tick: { readonly more: boolean; readonly nextDueInMs: number };
};

export type Reply = Replies[CommandKind];

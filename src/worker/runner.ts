/** What a door gives the worker for its kinds of tasks. */
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { FailReason, Plan, Step } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { Granted } from "#shard/client/executor.ts";

export type RunContext = {
  readonly task: Granted;
  /** Aborted when the attempt must stop at once; the runner returns only when none of its processes runs any more. */
  readonly signal: AbortSignal;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  /** How long the attempt may continue unless its claim is renewed. */
  readonly leftMs?: () => number;
  /**
   * Resolves when the shard has confirmed the claim; rejects if the claim is not held. Resolved from the start, except
   * for runners that prepare: those must have no visible effect before it.
   */
  readonly started?: () => Promise<void>;
  /** Sends steps to the shard in batches, in order. Returns at once. */
  readonly report: (step: Step) => void;
  /** Called when nothing more will be reported: until then a later process may have to report the attempt. */
  readonly afterwards?: (done: () => void) => void;
};

/** Bytes that the result names; the worker uploads them before it commits. */
export type Output = { readonly digest: Digest; readonly bytes: Uint8Array };

export type RunOutcome =
  | {
      readonly kind: "done";
      readonly payload: string;
      readonly outputs?: readonly Output[];
      readonly digests?: readonly Digest[];
      /** What the shard's owner publishes once the result is committed; the door's publisher reads it. */
      readonly publish?: string;
    }
  | { readonly kind: "failed"; readonly reason: FailReason; readonly message: string };

/** A task that an earlier process started and that still runs; its runner knows how to continue. */
export type Resume = {
  readonly granted: Granted;
  /** Ends it, unless its runner has taken it over. */
  readonly drop: () => void;
};

export type Runner = ((context: RunContext) => Promise<RunOutcome>) & {
  /** The runner is called before the claim is confirmed, and waits for `started` itself. */
  readonly prepares?: boolean;
};

/** Returns the tasks of a stage. Its inputs never change, so a repeated call returns the same tasks. */
export type Planner = (inputs: PlanInputs, context: Omit<RunContext, "report" | "afterwards">) => Promise<Plan> | Plan;

/** By kind of task, and by kind of plan. */
export type Runners = Readonly<Record<string, Runner>>;
export type Planners = Readonly<Record<string, Planner>>;

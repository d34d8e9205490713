/** What a door gives the worker for its kinds of tasks. */
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { FailReason, Plan, Signal, Step } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { Granted } from "#shard/client/executor.ts";

/**
 * Where a task is, and what it may call with: its own job's artifacts and its own steps. The token ends with the claim;
 * it belongs into a file or the environment of what runs, never on a command line, in a log or in a result.
 */
export type TaskAccess = {
  /** The node's address, as what runs here reaches it. */
  readonly server: string;
  readonly token: string;
  /** Of the certificates of those who sign the node's, where this machine does not know them. */
  readonly ca?: string | undefined;
};

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
  /**
   * Records how far the attempt has got: the task's next attempt gets it as `task.checkpoint`. Resolves when it is
   * durable, or when a newer one is; a runner that is asked to stop may still record where it stopped.
   */
  readonly checkpoint?: (left: Left) => Promise<void>;
  /**
   * Calls back with each signal to the task's stage, from the first on, one after the other. The shard hears that one
   * has arrived when the listener has returned or resolved; if it fails, the signal comes again.
   */
  readonly onSignal?: (listener: (signal: Signal) => void | Promise<void>) => void;
  /** Sends steps to the shard in batches, in order. Returns at once. */
  readonly report: (step: Step) => void;
  /** Called when nothing more will be reported: until then a later process may have to report the attempt. */
  readonly afterwards?: (done: () => void) => void;
  /** Undefined where no node can be reached, or none issues tokens. */
  readonly access?: () => Promise<TaskAccess | undefined>;
};

/** Bytes that the result names; the worker uploads them before it commits. */
export type Output = { readonly digest: Digest; readonly bytes: Uint8Array };

/** What an attempt leaves: a text for its door, blobs that the worker uploads first, and blobs that are stored. */
export type Left = {
  readonly payload: string;
  readonly outputs?: readonly Output[];
  readonly digests?: readonly Digest[];
};

export type RunOutcome =
  | (Left & {
      readonly kind: "done";
      /** What the shard's owner publishes once the result is committed; the door's publisher reads it. */
      readonly publish?: string;
    })
  /** `left`: what it leaves nevertheless. Also for an attempt that was stopped: the worker then says why. */
  | { readonly kind: "failed"; readonly reason: FailReason; readonly message: string; readonly left?: Left }
  /**
   * It stopped in the middle: another attempt goes on from the checkpoint, or from one that was recorded before. Costs
   * no attempt.
   */
  | { readonly kind: "given-back"; readonly checkpoint?: Left };

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
export type Planner = (
  inputs: PlanInputs,
  context: Omit<RunContext, "report" | "checkpoint" | "onSignal" | "afterwards" | "access">,
) => Promise<Plan> | Plan;

/** By kind of task, and by kind of plan. */
export type Runners = Readonly<Record<string, Runner>>;
export type Planners = Readonly<Record<string, Planner>>;

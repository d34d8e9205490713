/** What a door gives the worker for its kinds of task. */
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { FailReason, Plan, Step } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { Granted } from "#shard/client/executor.ts";

export type RunContext = {
  readonly task: Granted;
  /** Aborted when the attempt is to stop at once; the runner returns only when nothing of it runs any more. */
  readonly signal: AbortSignal;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  /** How long the attempt may go on, unless its claim is renewed meanwhile. */
  readonly leftMs?: () => number;
  /**
   * When its shard has answered that the claim is held. Known from the beginning, but for runners that prepare: those
   * do nothing before it that anybody could notice. Rejects when it is not held.
   */
  readonly started?: () => Promise<void>;
  /** Said on to the shard in batches, in order. Costs nothing here. */
  readonly report: (step: Step) => void;
  /** Done when nothing more will be said of the attempt: until then a later life of this process may have to say it. */
  readonly afterwards?: (done: () => void) => void;
};

/** Bytes that the result names; the worker puts them into the store before it commits. */
export type Output = { readonly digest: Digest; readonly bytes: Uint8Array };

export type RunOutcome =
  | {
      readonly kind: "done";
      readonly payload: string;
      readonly outputs?: readonly Output[];
      readonly digests?: readonly Digest[];
      /** What the shard's owner is to make known outside once this is committed; the door's publisher reads it. */
      readonly publish?: string;
    }
  | { readonly kind: "failed"; readonly reason: FailReason; readonly message: string };

/** A task that an earlier life of this process began and that is under way still; its runner knows how to go on. */
export type Resume = {
  readonly granted: Granted;
  /** Ends it, unless its runner has taken it up. */
  readonly drop: () => void;
};

export type Runner = ((context: RunContext) => Promise<RunOutcome>) & {
  /** It is called before the claim is known to be held, and waits for `started` itself. */
  readonly prepares?: boolean;
};

/** Says what a stage's tasks are. Its inputs never change, so asked again it says the same. */
export type Planner = (inputs: PlanInputs, context: Omit<RunContext, "report" | "afterwards">) => Promise<Plan> | Plan;

/** By kind of task, and by kind of plan. */
export type Runners = Readonly<Record<string, Runner>>;
export type Planners = Readonly<Record<string, Planner>>;

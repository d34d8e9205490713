/**
 * A workflow that was read and found right. Values that may hold expressions stay nodes, and are evaluated when their
 * contexts exist. All of it is plain data: a plan can be written down and read again.
 */
import type { Place } from "#doors/ci/workflow/problem.ts";
import type { Node } from "#doors/ci/workflow/yaml/node.ts";
import type { JobRetry, OnRunnerLoss, StepRetry } from "./millrace.ts";
import type { Permissions } from "./permissions.ts";
import type { Triggers } from "./triggers.ts";

export type Workflow = {
  readonly path: string;
  readonly name?: string;
  readonly runName?: Node;
  readonly on: Triggers;
  readonly permissions?: Permissions;
  readonly env?: Node;
  readonly defaults?: Node;
  readonly concurrency?: Node;
  readonly jobs: readonly Job[];
};

/** Always with a status function in it: what the author left out was added (CI-1). */
export type Condition = { readonly expression: string; readonly at?: Place; readonly source?: string };

export type Need = { readonly id: string; readonly at: Place };

type JobCommon = {
  readonly id: string;
  readonly at: Place;
  /** The file that it is written in. */
  readonly path: string;
  readonly name?: Node;
  readonly needs: readonly Need[];
  readonly if: Condition;
  readonly strategy?: Node;
  readonly permissions?: Permissions;
  readonly concurrency?: Node;
};

export type NormalJob = JobCommon & {
  readonly kind: "job";
  readonly runsOn: Node;
  readonly timeoutMinutes?: Node;
  readonly cancelTimeoutMinutes?: Node;
  readonly continueOnError?: Node;
  readonly container?: Node;
  readonly services?: Node;
  readonly env?: Node;
  readonly environment?: Node;
  readonly outputs?: Node;
  readonly defaults?: Node;
  readonly snapshot?: Node;
  /** What becomes of it when its runner is lost; left out: as its steps and its runner say. */
  readonly onRunnerLoss?: OnRunnerLoss;
  /** How often it is tried again, and why; left out: when its runner is lost, as usual. */
  readonly retry?: JobRetry;
  readonly steps: readonly Step[];
};

/** A job that is a workflow of its own. */
export type CallJob = JobCommon & {
  readonly kind: "call";
  readonly uses: string;
  readonly usesAt: Place;
  readonly with?: Node;
  readonly secrets?: "inherit" | Node;
  /** Undefined when the compiler was not given the called file. */
  readonly called?: Called;
};

export type Called = {
  readonly workflow: Workflow;
  readonly inputs?: Node;
  readonly secrets?: Node;
  readonly outputs?: Node;
};

export type Job = NormalJob | CallJob;

type StepCommon = {
  readonly id: string;
  /** False for an id that we made: `steps` does not show those. */
  readonly isIdGiven: boolean;
  readonly at: Place;
  readonly name?: Node;
  readonly continueOnError?: Node;
};

type StepWork = StepCommon & {
  readonly if: Condition;
  readonly timeoutMinutes?: Node;
  readonly env?: Node;
  readonly isBackground: boolean;
  readonly retry?: StepRetry;
};

export type RunStep = StepWork & {
  readonly kind: "run";
  readonly run: Node;
  readonly shell?: Node;
  readonly workingDirectory?: Node;
};

export type UsesStep = StepWork & {
  readonly kind: "uses";
  readonly uses: string;
  readonly usesAt: Place;
  readonly with?: Node;
};
export type WaitStep = StepCommon & { readonly kind: "wait"; readonly ids: readonly string[] };
export type WaitAllStep = StepCommon & { readonly kind: "wait-all" };
export type CancelStep = StepCommon & { readonly kind: "cancel"; readonly target: string };
export type ParallelStep = {
  readonly kind: "parallel";
  readonly at: Place;
  readonly id: string;
  readonly steps: readonly Step[];
};

export type Step = RunStep | UsesStep | WaitStep | WaitAllStep | CancelStep | ParallelStep;

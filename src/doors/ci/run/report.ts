/** What a job says while it runs. Its starter decides where that goes: a terminal, a stream, a record. */
import type { ConditionPart } from "#doors/ci/workflow/expression/explain.ts";
import type { JobResult } from "#doors/ci/workflow/plan/job-plan.ts";

export type StepRef = {
  /** Counts from 0 within the job, in the order of starting. */
  readonly number: number;
  readonly id: string;
  readonly name: string;
  /** 0 for steps of the job itself, more inside composite actions. */
  readonly depth: number;
};

export type StepOutcome = "success" | "failure" | "cancelled" | "skipped";

export type AnnotationLevel = "notice" | "warning" | "error";

export type Annotation = {
  readonly level: AnnotationLevel;
  readonly message: string;
  readonly title?: string;
  readonly file?: string;
  readonly line?: number;
  readonly endLine?: number;
  readonly column?: number;
  readonly endColumn?: number;
  readonly code?: string;
};

export type LineLevel = "plain" | "command" | "debug" | AnnotationLevel;

/** Every text in here is masked. */
export type Report =
  | { readonly kind: "step-started"; readonly step: StepRef }
  | {
      readonly kind: "step-skipped";
      readonly step: StepRef;
      readonly why: string;
      /** What each part of its condition came to. */
      readonly condition: ConditionPart;
    }
  | { readonly kind: "line"; readonly step: StepRef; readonly level: LineLevel; readonly text: string }
  | { readonly kind: "group"; readonly step: StepRef; readonly title: string }
  | { readonly kind: "group-ended"; readonly step: StepRef }
  | { readonly kind: "annotation"; readonly step: StepRef; readonly annotation: Annotation }
  | { readonly kind: "summary"; readonly step: StepRef; readonly text: string }
  | {
      readonly kind: "step-ended";
      readonly step: StepRef;
      readonly outcome: StepOutcome;
      readonly conclusion: StepOutcome;
      readonly tookMs: number;
    }
  | { readonly kind: "job-note"; readonly level: LineLevel; readonly text: string };

export type JobOutcome = {
  readonly result: Exclude<JobResult, "skipped">;
  readonly outputs: ReadonlyMap<string, string>;
  readonly environmentUrl?: string;
  /** It was stopped because its own time was over. */
  readonly isTimeout?: boolean;
};

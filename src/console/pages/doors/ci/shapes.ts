/** Answers of the CI door's calls, as far as the pages use them (docs/reference/http.md has all of it). */

export type Standing = { readonly status: string; readonly conclusion?: string | undefined };

export type ShownRun = Standing & {
  readonly run: string;
  readonly repository: string;
  readonly title: string;
  readonly event: string;
  readonly ref: string;
  readonly sha: string;
  readonly actor: string;
  readonly attempt?: number;
  readonly again?: string;
  /** Effects that wait for a person. */
  readonly decisions?: readonly string[];
  readonly createdAt: string;
  readonly endedAt?: string;
};

export type ShownStep = Standing & { readonly number: number; readonly name: string; readonly tookMs?: number };

export type ShownJob = Standing & {
  readonly job?: string;
  readonly id: string;
  readonly name: string;
  readonly needs: readonly string[];
  readonly reason: string;
  readonly attempts: number;
  readonly runner?: string;
  readonly failure?: string;
  readonly steps: readonly ShownStep[];
};

export type RunDetails = ShownRun & { readonly reason: string; readonly jobs: readonly ShownJob[] };

export type LogLine = { readonly step?: number; readonly kind: string; readonly text: string };
export type LogBatch = { readonly lines: readonly LogLine[]; readonly ended?: boolean };

export type JobDetails = {
  readonly annotations: readonly {
    readonly level: "notice" | "warning" | "error";
    readonly message: string;
    readonly title?: string;
    readonly file?: string;
    readonly line?: number;
  }[];
  readonly summaries: readonly { readonly step: number; readonly text: string }[];
};

export type WhyAnswer = {
  readonly jobs: readonly (Standing & { readonly name: string; readonly lines: readonly string[] })[];
};

export type ApprovalsAnswer = {
  readonly waiting: readonly {
    readonly environment: string;
    readonly jobs: readonly string[];
    readonly reviewers: readonly string[];
    readonly approvals: number;
    readonly approvedBy: readonly string[];
    readonly waitsUntil?: string;
  }[];
};

/** A job before it is planned has no id of its own. */
export const keyOf = ({ job, name }: ShownJob): string => job ?? name;

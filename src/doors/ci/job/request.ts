/** What passes between a node and the process that runs one job for it: files in the job's own folder. */
import type { LabelledHost } from "#doors/ci/containers/host.ts";
import type { JobSpec } from "#doors/ci/run/spec.ts";

/** In the job's folder. The request is removed as soon as it is read: secrets are in it. */
export const names = {
  request: "request.json",
  log: "log",
  steps: "steps",
  details: "details",
  outcome: "outcome.json",
  cancel: "cancel",
  /** A repository with the one commit that the job is about. */
  source: "source.git",
  /** Actions of others. */
  actions: "actions",
} as const;

/** With this exit code the job's program says that there is no request: a node starts it so to have it compiled. */
export const noRequestCode = 75;

/** Names the job's folder as the job is to see it: a working folder that is reached by a link has another name. */
export const folderVariable = "MILLRACE_JOB_FOLDER";

export type JobRequest = {
  readonly spec: JobSpec;
  readonly runner: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  /** Besides secrets, what its output must never show. */
  readonly masked?: readonly string[];
  /** Variables for steps that are actions. */
  readonly actionEnv?: Readonly<Record<string, string>>;
  /** Entries of the github context that only the node knows. */
  readonly github?: Readonly<Record<string, string>>;
  /** How steps call the node as this attempt: the token ends with its claim. */
  readonly access?: { readonly server: string; readonly token: string };
  /** What is checked out before the first step; left out: nothing. */
  readonly checkout?: { readonly sha: string; readonly ref: string };
  /** Actions of others, by `owner/repo@ref`: where they were laid, and as which commit, or why they are not there. */
  readonly actions?: Readonly<
    Record<string, { readonly folder?: string; readonly sha?: string; readonly missing?: string }>
  >;
  /** Left out: this machine runs no containers. */
  readonly containers?: LabelledHost;
  readonly logBytesMax: number;
  /** Left out: if the runner is lost, the job starts again. */
  readonly keep?: {
    /** Seals what the job keeps, as base64. */
    readonly key: string;
    /** How many deltas of an earlier attempt are in the folder; left out: the job starts. */
    readonly deltas?: number;
  };
};

/** One line of the file of steps. */
export type StepNews = {
  readonly number: number;
  readonly name: string;
  readonly status: "started" | "success" | "failure" | "cancelled" | "skipped";
  readonly atMs: number;
  readonly tookMs: number;
};

export type JobOutcomeFile = {
  readonly result: "success" | "failure" | "cancelled";
  readonly outputs: Readonly<Record<string, string>>;
  readonly environmentUrl?: string;
  readonly isTimeout?: boolean;
  /** What its processes have used, as far as it knows; counts where nothing measures it from outside. */
  readonly cpuMs?: number;
};

/** What people can look up when work has left memory: the kernel makes these rows, the journal keeps them. */
import type { ShardId } from "./ids.ts";

export type HistoryRows = {
  readonly jobs: readonly JobRow[];
  readonly stages: readonly StageRow[];
  readonly tasks: readonly TaskRow[];
  readonly attempts: readonly AttemptRow[];
  readonly steps: readonly StepRow[];
  /** Of tracked jobs only. */
  readonly submissions?: readonly SubmissionRow[];
};

/** What a tracked job was submitted with, as JSON, so that it can be submitted again. */
export type SubmissionRow = { readonly shard: ShardId; readonly job: number; readonly request: string };

export type JobRow = {
  readonly shard: ShardId;
  readonly job: number;
  readonly tenant: string;
  readonly door: string;
  readonly name: string;
  readonly phase: string;
  readonly reason: string;
  readonly priority: number;
  readonly submittedAtMs: number;
  /** 0 while the job has not ended. */
  readonly endedAtMs: number;
  /** When this was last known to be so: for a job that has ended, its end. */
  readonly seenAtMs: number;
  /** What jobs are found by, as `name=value`. */
  readonly tags: readonly string[];
  /** The series that it took its number of; empty and 0 without one. */
  readonly series: string;
  readonly number: number;
};

export type StageRow = {
  readonly shard: ShardId;
  readonly job: number;
  readonly stage: number;
  readonly name: string;
  readonly phase: string;
  readonly generation: number;
  readonly tasks: number;
  readonly reason: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
};

export type TaskRow = {
  readonly shard: ShardId;
  readonly task: number;
  readonly job: number;
  readonly stage: number;
  readonly key: string;
  readonly phase: string;
  readonly generation: number;
  readonly attempts: number;
  /** The committed result, or what the last attempt left that failed, as the door wrote it. */
  readonly result: string;
  readonly digests: readonly string[];
  readonly reason: string;
  readonly queuedAtMs: number;
  readonly endedAtMs: number;
};

export type AttemptRow = {
  readonly shard: ShardId;
  readonly task: number;
  readonly token: number;
  readonly job: number;
  readonly executor: string;
  readonly outcome: string;
  readonly reason: string;
  readonly grantedAtMs: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
};

export type StepRow = {
  readonly shard: ShardId;
  readonly task: number;
  readonly token: number;
  readonly step: number;
  readonly name: string;
  readonly status: string;
  readonly atMs: number;
};

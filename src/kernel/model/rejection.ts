/** A refused command is a value. Each kind says why the command was refused, so that a caller can act on it. */
import type { TaskPhase } from "./model.ts";

export type Rejection =
  /** The command itself is wrong; `path` points into it. */
  | { readonly kind: "invalid"; readonly path: string; readonly why: string }
  | { readonly kind: "limit"; readonly what: string; readonly limit: number; readonly got: number }
  | { readonly kind: "cycle"; readonly stages: readonly string[] }
  | { readonly kind: "job-unknown"; readonly job: number }
  | { readonly kind: "stage-unknown"; readonly job: number; readonly stage: number }
  | { readonly kind: "task-unknown"; readonly task: number }
  | { readonly kind: "job-ended"; readonly job: number; readonly phase: string }
  /** The token does not belong to a live attempt of this executor: its work no longer counts. */
  | { readonly kind: "token-stale"; readonly task: number; readonly offered: number; readonly current: number }
  | { readonly kind: "task-phase"; readonly task: number; readonly phase: TaskPhase; readonly wanted: string }
  | { readonly kind: "key-reused"; readonly key: string; readonly job: number }
  /** A submission that only joins, and no live job of the tenant and door has this merge key. */
  | { readonly kind: "nothing-to-join"; readonly mergeKey: string }
  | { readonly kind: "evidence-missing"; readonly digest: string }
  | { readonly kind: "evidence-expired"; readonly pinnedForMs: number }
  | { readonly kind: "generation-stale"; readonly task: number; readonly offered: number; readonly current: number }
  | { readonly kind: "executor-drained"; readonly executor: string; readonly reason: string }
  | { readonly kind: "queue-full"; readonly tenant: string; readonly queuedMax: number; readonly retryAfterMs: number }
  /** The shard cannot accept more work: memory is full, or history is too far behind. */
  | { readonly kind: "shard-full"; readonly what: string; readonly retryAfterMs: number }
  /** The command made `decide` throw (K12); the state is unchanged. */
  | { readonly kind: "broken"; readonly why: string };

export type RejectionKind = Rejection["kind"];

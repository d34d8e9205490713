import { deepEqual, equal, match } from "node:assert/strict";
import { describe, test } from "node:test";
import { detailsOf, grpcCode, GrpcError } from "#grpc/status.ts";
import type { Event } from "#kernel/model/event.ts";
import type { FailReason, JobPhase } from "#kernel/model/model.ts";
import type { JobView } from "#kernel/read/query.ts";
import type { Watched } from "#shard/router/router.ts";
import {
  ExecuteOperationMetadata,
  ExecutionStage_Value as Stage,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import { decode } from "#wire/message.ts";
import { ExecutionFollower, timestampOf, viewOperation, type Ended } from "./view.ts";
import { abandoned, hopeless, isAbandoned, responseOf, viewFailure } from "./execute/view-failure.ts";

const stamp = { epoch: 1, seq: 1 };
const at = 0;
const told = (...events: readonly Event[]): Watched => ({ kind: "events", stamp, events });
const claimed = (token: number, executor: string): Event => ({
  kind: "claimed",
  task: 1,
  token,
  executor,
  leaseMs: 1,
  started: false,
  nonce: "n",
  at,
});
const started = (token: number): Event => ({ kind: "started", task: 1, token, at });
const attemptEnded = (token: number, reason: FailReason): Event => ({
  kind: "attempt-ended",
  task: 1,
  token,
  outcome: "expired",
  reason,
  message: "gone",
  next: { do: "retry", atMs: 1 },
  at,
});
const result = { payload: "{}", digests: [] };
const committed = (token: number): Event => ({ kind: "committed", task: 1, token, result, at });
const jobEnded = (phase: JobPhase): Event => ({ kind: "job-ended", job: 1, phase, reason: "", at });

describe("an operation follows its job", () => {
  test("REAPI-48, REAPI-65: from queued to executing, back when a worker is lost, and on to the end", () => {
    const follower = new ExecutionFollower();
    const seen: unknown[] = [];
    const script = [
      told(claimed(1, "one")),
      told(started(1)),
      told(attemptEnded(1, "executor-lost")),
      told({ kind: "requeued", task: 1, at }),
      told(claimed(2, "two"), started(2)),
      told(committed(2)),
      told({ kind: "published", job: 1, task: 1, generation: 1, at }),
      told(jobEnded("SUCCEEDED")),
    ];
    for (const message of script) if (follower.hear(message)) seen.push(follower.progress);
    deepEqual(seen, [
      { stage: Stage.QUEUED, worker: "one", token: undefined },
      { stage: Stage.EXECUTING, worker: "one", token: 1 },
      { stage: Stage.QUEUED, worker: "", token: undefined },
      { stage: Stage.EXECUTING, worker: "two", token: 2 },
      { stage: Stage.COMPLETED, worker: "two", token: 2 },
    ]);
    deepEqual(follower.ended?.result, result);
  });

  test("an operation that was claimed before the watch began names its worker when it starts", () => {
    const follower = new ExecutionFollower();
    const claims = [{ token: 1, executor: "one", started: false }];
    const view = { phase: "RUNNING", reason: "", tasks: [{ planning: false, claims }] } as unknown as JobView;
    follower.hear({ kind: "snapshot", stamp, view });
    follower.hear(told(started(1)));
    deepEqual([follower.progress.stage, follower.progress.worker], [Stage.EXECUTING, "one"]);
  });

  test("not done before its result is published: committed is not yet ended", () => {
    const follower = new ExecutionFollower();
    follower.hear(told(claimed(1, "one"), started(1), committed(1)));
    equal(follower.ended, undefined);
  });

  test("REAPI-47, REAPI-48: metadata on every message, done only with a response, and never an operation error", () => {
    const about = { name: "operations/j0-1", action: `blake3:${"a".repeat(64)}/7`, queuedAtMs: 1_500 };
    const running = viewOperation(about, { stage: Stage.EXECUTING, worker: "one" });
    const metadata = decode(ExecuteOperationMetadata, running.metadata?.value ?? new Uint8Array());
    deepEqual([running.done, running.result, metadata.stage], [false, undefined, Stage.EXECUTING]);
    deepEqual([metadata.actionDigest, metadata.digestFunction], [{ hash: "a".repeat(64), sizeBytes: 7 }, 9]);
    deepEqual(metadata.partialExecutionMetadata?.queuedTimestamp, { seconds: 1, nanos: 500_000_000 });
    const status = { code: grpcCode.aborted, message: "", details: [] };
    const done = viewOperation(about, { stage: Stage.EXECUTING, worker: "one" }, responseOf(status));
    deepEqual([done.done, done.result?.kind], [true, "response"]);
    equal(decode(ExecuteOperationMetadata, done.metadata?.value ?? new Uint8Array()).stage, Stage.COMPLETED);
  });

  test("times have their full precision", () => {
    deepEqual(timestampOf(1_700_000_000_123.5), { seconds: 1_700_000_000, nanos: 123_500_000 });
  });
});

describe("a job without a result", () => {
  const ended = (phase: JobPhase, reason: string, failure?: FailReason): Ended => ({
    phase,
    reason,
    result: undefined,
    failure: failure && { reason: failure, message: "what happened" },
  });
  const seen = (one: Ended): readonly [number | undefined, boolean] => {
    const { status } = viewFailure(one);
    const error = new GrpcError(status?.code ?? 0, "", status?.details ?? []);
    return [status?.code, detailsOf(error, RetryInfo).length > 0];
  };

  test("REAPI-57, REAPI-58, REAPI-65, REAPI-67: its code says whether to try again", () => {
    deepEqual(seen(ended("CANCELLED", "cancelled by miller")), [grpcCode.cancelled, false]);
    deepEqual(seen(ended("CANCELLED", `${hopeless}the nearest lacks it`)), [grpcCode.failedPrecondition, false]);
    deepEqual(seen(ended("FAILED", "no executor took it within 5 ms")), [grpcCode.failedPrecondition, false]);
    deepEqual(seen(ended("FAILED", "", "executor-lost")), [grpcCode.aborted, true]);
    deepEqual(seen(ended("FAILED", "", "preempted")), [grpcCode.aborted, true]);
    deepEqual(seen(ended("FAILED", "", "out-of-memory")), [grpcCode.resourceExhausted, true]);
    deepEqual(seen(ended("FAILED", "", "timed-out")), [grpcCode.deadlineExceeded, false]);
    match(viewFailure(ended("FAILED", "", "executor-lost")).status?.message ?? "", /what happened/);
  });

  test("REAPI-50: one that was cancelled because no client waited counts as unknown", () => {
    equal(isAbandoned(ended("CANCELLED", abandoned)), true);
    equal(isAbandoned(ended("CANCELLED", "cancelled by miller")), false);
  });
});

/** Pure: turns a shard's messages about a job into an operation as clients of remote execution know it. */
import { parseDigest } from "#base/digest.ts";
import type { Event } from "#kernel/model/event.ts";
import type { FailReason, JobPhase, Result } from "#kernel/model/model.ts";
import type { JobView } from "#kernel/read/query.ts";
import type { Watched } from "#shard/router/router.ts";
import { detail } from "#grpc/status.ts";
import {
  ExecuteOperationMetadata,
  ExecuteResponse,
  ExecutionStage_Value as Stage,
  type ExecutedActionMetadata,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Operation } from "#wire/generated/google/longrunning/operations.ts";
import { numberOf, wireOf } from "./digests.ts";
import { streamNameOf } from "./execute/operation-names.ts";
import type { ActionSpec } from "./plan.ts";

/** How a job ended, as far as this door needs it. */
export type Ended = {
  readonly phase: JobPhase;
  readonly reason: string;
  readonly result: Result | undefined;
  readonly failure: { readonly reason: FailReason; readonly message: string } | undefined;
};

/** The progress while it runs. */
export type Progress = {
  readonly stage: number;
  readonly worker: string;
  /** The claim it runs under, while it does: identifies its output streams. */
  readonly token?: number | undefined;
};

/** Follows a watch of one job. Its stage may go back from EXECUTING to QUEUED: the worker was lost (REAPI-48). */
export class ExecutionFollower {
  #stage: number = Stage.QUEUED;
  #worker = "";
  #token: number | undefined;
  #result: Result | undefined;
  #failure: Ended["failure"];
  #taskReason = "";
  #ended: Ended | undefined;

  get progress(): Progress {
    return { stage: this.#ended ? Stage.COMPLETED : this.#stage, worker: this.#worker, token: this.#token };
  }

  get ended(): Ended | undefined {
    return this.#ended;
  }

  /** Whether there is something new to report. */
  hear(message: Watched): boolean {
    const before = this.progress;
    if (message.kind === "snapshot") this.#snapshot(message.view);
    else if (message.kind === "events") for (const event of message.events) this.#event(event);
    const { stage, worker, token } = this.progress;
    return stage !== before.stage || worker !== before.worker || token !== before.token;
  }

  #snapshot({ phase, reason, endedAtMs, tasks }: JobView): void {
    const task = tasks.find(({ planning }) => !planning);
    const claim = task?.claims.find(({ started }) => started);
    this.#move(claim?.executor, claim?.token);
    // Claimed and not started: the start event does not repeat the executor.
    if (!claim) this.#worker = task?.claims[0]?.executor ?? "";
    this.#result = task?.result;
    this.#failure = task?.lastFailure;
    if (endedAtMs !== undefined) this.#end(phase, reason);
  }

  #event(event: Event): void {
    switch (event.kind) {
      case "claimed":
        if (event.started) this.#move(event.executor, event.token);
        else this.#worker = event.executor;
        return;
      case "started":
        this.#stage = Stage.EXECUTING;
        this.#token = event.token;
        return;
      case "attempt-ended":
        if (event.next.do !== "nothing") this.#move(undefined);
        this.#failure = { reason: event.reason, message: event.message };
        return;
      case "committed":
        this.#result = event.result;
        return;
      case "invalidated":
        this.#result = undefined;
        this.#move(undefined);
        return;
      case "task-failed":
        this.#taskReason = event.reason;
        return;
      case "job-ended":
        return this.#end(event.phase, event.reason);
      default:
    }
  }

  #move(executor: string | undefined, token?: number): void {
    this.#token = token;
    this.#stage = executor === undefined ? Stage.QUEUED : Stage.EXECUTING;
    this.#worker = executor ?? "";
  }

  #end(phase: JobPhase, reason: string): void {
    this.#ended = { phase, reason: this.#taskReason || reason, result: this.#result, failure: this.#failure };
  }
}

export type OperationAbout = { readonly name: string; readonly action: string; readonly queuedAtMs?: number };

/** REAPI-48: metadata on every message. REAPI-47: an operation never has an error itself. */
export function viewOperation(
  { name, action, queuedAtMs }: OperationAbout,
  { stage, worker, token }: Progress,
  response?: ExecuteResponse,
): Operation {
  const fn = parseDigest(action)?.fn ?? "sha256";
  const partial: ExecutedActionMetadata = {
    worker,
    auxiliaryMetadata: [],
    ...(queuedAtMs === undefined ? {} : { queuedTimestamp: timestampOf(queuedAtMs) }),
  };
  const metadata: ExecuteOperationMetadata = {
    stage: response ? Stage.COMPLETED : stage,
    actionDigest: wireOf(action),
    stdoutStreamName: token === undefined ? "" : streamNameOf(name, token, "stdout"),
    stderrStreamName: token === undefined ? "" : streamNameOf(name, token, "stderr"),
    partialExecutionMetadata: response?.result?.executionMetadata ?? partial,
    digestFunction: numberOf(fn),
  };
  return {
    name,
    metadata: detail(ExecuteOperationMetadata, metadata),
    done: response !== undefined,
    ...(response && { result: { kind: "response", value: detail(ExecuteResponse, response) } }),
  };
}

/** An operation that was done from the start. */
export const viewCached = (name: string, action: string, response: ExecuteResponse): Operation =>
  viewOperation({ name, action }, { stage: Stage.COMPLETED, worker: "" }, response);

export const aboutSpec = (name: string, { action, queuedAtMs }: ActionSpec): OperationAbout => ({
  name,
  action,
  queuedAtMs,
});

export function timestampOf(ms: number): { readonly seconds: number; readonly nanos: number } {
  const seconds = Math.floor(ms / 1_000);
  return { seconds, nanos: Math.round((ms - seconds * 1_000) * 1e6) };
}

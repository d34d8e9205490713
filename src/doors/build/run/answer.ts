/**
 * The answer for clients that wait for an action, put into the store; with what the kernel records of it.
 *
 * E2 A result goes into the cache only when its command ended with 0, its status is OK and its action may be cached.
 */
import type { Digest, DigestFunction } from "#base/digest.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import { grpcCode } from "#grpc/status.ts";
import type { Granted } from "#shard/client/executor.ts";
import { ActionResult, ExecuteResponse } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Status } from "#wire/generated/google/rpc/status.ts";
import { encode } from "#wire/message.ts";
import type { RunOutcome } from "#worker/runner.ts";
import { wireOf } from "#doors/build/digests.ts";
import { blobSubject } from "#doors/build/names.ts";
import type { ActionSpec } from "#doors/build/plan.ts";
import { publicationText } from "#doors/build/execute/publish.ts";
import { runLog, runLogName } from "./log.ts";
import { outcomeText, pinnable, tooManyText } from "./outcome.ts";
import { failed } from "#doors/build/execute/view-failure.ts";

/** The outcome: a status if it failed, and as much of a result as there is. */
export type Made = {
  readonly status: Status | undefined;
  readonly message: string;
  readonly result: ActionResult | undefined;
  readonly digests: readonly Digest[];
};

export type AnswerPorts = {
  readonly task: Granted;
  readonly spec: ActionSpec;
  readonly blobs: BlobStore;
};

export async function storeAnswer(made: Made, ports: AnswerPorts): Promise<RunOutcome> {
  const { spec, blobs, task } = ports;
  const { status, message, result, digests, serverLogs } = await noted(keepable(made), ports);
  const code = status?.code ?? 0;
  const exitCode = result?.exitCode ?? 0;
  const isForCache = result !== undefined && code === 0 && exitCode === 0 && !spec.doNotCache;
  const { instance, action, principal, because } = spec;
  const about = { instance, action, code, exitCode, principal, token: task.token, ...(because && { because }) };
  if (isForCache) {
    // The cache serves the same bytes as the answer, except for the message: one blob for both.
    const stored = await put(blobs, encode(ActionResult, result));
    const publish = publicationText(spec, stored);
    const payload = outcomeText({ ...about, result: stored, message });
    return { kind: "done", payload, digests: pinnable([stored, ...digests]), publish };
  }
  const response = { cachedResult: false, serverLogs, message, ...(result && { result }), ...(status && { status }) };
  const stored = await put(blobs, encode(ExecuteResponse, response));
  const payload = outcomeText({ ...about, response: stored });
  return { kind: "done", payload, digests: pinnable([stored, ...digests]) };
}

/** K3: no client gets a result of which a part may be gone tomorrow. */
function keepable(made: Made): Made {
  const why = tooManyText(made.digests);
  if (why === undefined) return made;
  return { status: failed(grpcCode.resourceExhausted, why), message: made.message, result: undefined, digests: [] };
}

/** For a failed run the answer includes the worker's notes, and the result by its digest. */
async function noted(
  made: Made,
  { task, spec, blobs }: AnswerPorts,
): Promise<Made & Pick<ExecuteResponse, "serverLogs">> {
  const { status, message, result, digests } = made;
  if (!result || ((status?.code ?? 0) === 0 && result.exitCode === 0)) return { ...made, serverLogs: new Map() };
  const [log, kept] = await Promise.all([
    put(blobs, Buffer.from(runLog({ task, spec, status, message, result })), spec.fn),
    put(blobs, encode(ActionResult, result), spec.fn),
  ]);
  const serverLogs = new Map([[runLogName, { digest: wireOf(log), humanReadable: true }]]);
  return {
    ...made,
    message: `${message}, result: ${blobSubject(kept)}`,
    digests: [log, kept, ...digests],
    serverLogs,
  };
}

async function put(blobs: BlobStore, bytes: Buffer, fn?: DigestFunction): Promise<Digest> {
  const digest = digestOf(bytes, fn);
  await blobs.write(digest, bytes);
  return digest;
}

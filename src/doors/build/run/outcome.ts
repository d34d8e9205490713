/** What a worker records of an action: small enough for the kernel; the rest is a blob that it names. */
import type { Digest } from "#base/digest.ts";
import { defaultLimits } from "#kernel/model/limits.ts";
import type { Result } from "#kernel/model/model.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { ActionResult, ExecuteResponse } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import { isEmpty } from "#doors/build/digests.ts";
import type { MissReason } from "#doors/build/why/seen.ts";

/** Why an action was run and its result not taken from the cache. */
export type RanBecause =
  | MissReason
  | { readonly kind: "skip-cache-lookup" }
  | { readonly kind: "do-not-cache" }
  /** The result in the cache lacks an output that this action must have. */
  | { readonly kind: "lacks-output"; readonly output: string }
  /** The requester may not read the cache. */
  | { readonly kind: "may-not-read" };

/** Where the answer is: a whole ExecuteResponse; or only the result, if there is nothing to add but this. */
export type AnswerAt = { readonly response: Digest } | { readonly result: Digest; readonly message?: string };

export type ActionOutcome = AnswerAt & {
  readonly instance: string;
  readonly action: Digest;
  /** The status code; 0 is OK. */
  readonly code: number;
  readonly exitCode: number;
  /** The requester: it may read the operation again when its spec is gone. */
  readonly principal?: string;
  /** The claim it ran under: identifies its output streams. */
  readonly token?: number;
  /** It was not run: the result came from the cache. */
  readonly cached?: boolean;
  readonly because?: RanBecause;
};

/** Each once: everything that must be pinned before the result counts (K3). The empty blob always exists. */
export const pinnable = (digests: readonly Digest[]): readonly Digest[] =>
  [...new Set(digests)].filter((digest) => !isEmpty(digest));

/** For the result itself, its log and its answer. */
const besides = 3;

/**
 * Why the outputs of an action cannot all be pinned, and so are not a result; undefined if they can, as nearly always.
 */
export function tooManyText(digests: readonly Digest[]): string | undefined {
  const most = defaultLimits.digestsMax - besides;
  if (digests.length <= most) return undefined;
  const count = pinnable(digests).length;
  if (count <= most) return undefined;
  return `the action made ${count} different files and folders, and at most ${most} can be kept: it may pack them into one`;
}

export const outcomeText = (outcome: ActionOutcome): string => JSON.stringify(outcome);

export const answerDigest = (at: AnswerAt): Digest => ("response" in at ? at.response : at.result);

export async function readAnswer(at: AnswerAt, blobs: BlobStore): Promise<ExecuteResponse> {
  if ("response" in at) return decode(ExecuteResponse, Uint8Array.from(await wholeBlob(blobs, at.response)));
  const result = decode(ActionResult, Uint8Array.from(await wholeBlob(blobs, at.result)));
  return { result, cachedResult: false, serverLogs: new Map(), message: at.message ?? "" };
}

/** Undefined if this door did not write it. */
export function readOutcome(result: Result | undefined): ActionOutcome | undefined {
  if (!result) return undefined;
  try {
    const outcome = JSON.parse(result.payload) as { readonly response?: unknown; readonly result?: unknown };
    return typeof (outcome.response ?? outcome.result) === "string" ? (outcome as ActionOutcome) : undefined;
  } catch {
    return undefined;
  }
}

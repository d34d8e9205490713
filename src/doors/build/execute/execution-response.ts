/** The answer that a worker put into the store, prepared for the waiting client. */
import { digestSizeBytes, type DigestFunction } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import {
  ActionResult,
  type ExecuteResponse,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode } from "#wire/message.ts";
import { inlined } from "#doors/build/cache/inline.ts";
import { notFound } from "#doors/build/refusals.ts";
import { answerDigest, readAnswer, readOutcome } from "#doors/build/run/outcome.ts";
import type { Ended } from "#doors/build/view.ts";
import { viewFailure } from "./view-failure.ts";

export type Inline = {
  readonly inlineStdout: boolean;
  readonly inlineStderr: boolean;
  readonly inlineOutputFiles: readonly string[];
};

/** For a result that was in the cache before. */
export const cachedResponse = (result: Uint8Array): ExecuteResponse => ({
  result: decode(ActionResult, result),
  cachedResult: true,
  serverLogs: new Map(),
  message: "",
});

/** Output of a command up to this size is inlined in the answer, although the client cannot ask for that. */
const inlineBytesMax = 16 * 1024;

/** Throws NOT_FOUND when the answer has been evicted: clients then execute the action again. */
export async function readResponse(
  ended: Ended,
  fn: DigestFunction,
  blobs: BlobStore,
  inline: Inline,
): Promise<ExecuteResponse> {
  const outcome = ended.phase === "SUCCEEDED" ? readOutcome(ended.result) : undefined;
  if (!outcome) return viewFailure(ended);
  let response: ExecuteResponse;
  try {
    response = await readAnswer(outcome, blobs);
  } catch (error) {
    throw isFault(error, "not-found") ? notFound("the answer of this operation is no longer kept") : error;
  }
  if (!response.result) return response;
  const storedBytes = digestSizeBytes(answerDigest(outcome));
  return { ...response, result: await withPrinted(response.result, fn, blobs, inline, storedBytes) };
}

async function withPrinted(
  result: ActionResult,
  fn: DigestFunction,
  blobs: BlobStore,
  inline: Inline,
  resultBytes: number,
): Promise<ActionResult> {
  const isSmall = (sizeBytes = 0): boolean => sizeBytes > 0 && sizeBytes <= inlineBytesMax;
  const wanted = {
    inlineStdout: inline.inlineStdout || isSmall(result.stdoutDigest?.sizeBytes),
    inlineStderr: inline.inlineStderr || isSmall(result.stderrDigest?.sizeBytes),
    inlineOutputFiles: inline.inlineOutputFiles,
  };
  try {
    return await inlined(result, wanted, { fn, blobs, resultBytes });
  } catch (error) {
    if (isFault(error, "not-found")) return result; // the client finds out, as with every other missing blob
    throw error;
  }
}

/** A result as it is stored: without inlined bytes that have a digest, and never empty. */
import type { DigestFunction } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";
import {
  ActionResult,
  type Digest as WireDigest,
} from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { decode, encode } from "#wire/message.ts";
import { shown, wireOf } from "#doors/build/digests.ts";
import { invalid } from "#doors/build/refusals.ts";

/** Unchanged, byte for byte, unless something has to be removed or added. */
export async function stripped(
  given: Uint8Array,
  fn: DigestFunction,
  blobs: BlobStore,
  principal: string,
): Promise<{ readonly bytes: Uint8Array; readonly result: ActionResult }> {
  const result = readResult(given);
  checkPaths(result);
  const hasRaw =
    result.stdoutRaw.length > 0 ||
    result.stderrRaw.length > 0 ||
    result.outputFiles.some(({ contents }) => contents.length > 0);
  if (!hasRaw && given.length > 0) return { bytes: given, result };
  const move = async (raw: Uint8Array, digest: WireDigest | undefined, what: string) => {
    if (raw.length === 0) return digest;
    const own = digestOf(raw, fn);
    const wire = wireOf(own);
    if (digest && (digest.hash !== wire.hash || digest.sizeBytes !== wire.sizeBytes))
      throw invalid(`${what} has another digest than it says`);
    await blobs.write(own, raw);
    return wire;
  };
  const outputFiles: ActionResult["outputFiles"][number][] = [];
  for (const file of result.outputFiles) {
    const digest = await move(file.contents, file.digest, file.path);
    outputFiles.push({ ...file, digest, contents: new Uint8Array() });
  }
  const kept: ActionResult = {
    ...result,
    outputFiles,
    stdoutDigest: await move(result.stdoutRaw, result.stdoutDigest, "the standard output"),
    stderrDigest: await move(result.stderrRaw, result.stderrDigest, "the standard error"),
    stdoutRaw: new Uint8Array(),
    stderrRaw: new Uint8Array(),
  };
  const bytes = encode(ActionResult, kept);
  return bytes.length > 0 ? { bytes, result: kept } : notEmpty(kept, principal);
}

/** Adds the worker's name, so that the encoded answer is never empty: some clients treat zero bytes as a miss. */
function notEmpty(result: ActionResult, principal: string) {
  const executionMetadata = { worker: principal, auxiliaryMetadata: [] };
  const filled: ActionResult = { ...result, executionMetadata };
  return { bytes: encode(ActionResult, filled), result: filled };
}

function readResult(given: Uint8Array): ActionResult {
  try {
    return decode(ActionResult, given);
  } catch (error) {
    throw isFault(error, "invalid") ? invalid(`action_result cannot be read: ${error.message}`) : error;
  }
}

/** Below the working directory or, with leading "..", beside it: an action may run deep inside its input root. */
const pathShape = /^(?:\.\.\/)*(?!\.\.?(?:\/|$))[^/\0]+(?:\/(?!\.\.?(?:\/|$))[^/\0]+)*$/;

function checkPaths(result: ActionResult): void {
  const files = [
    ...result.outputFiles,
    ...result.outputSymlinks,
    ...result.outputFileSymlinks,
    ...result.outputDirectorySymlinks,
  ];
  for (const { path } of files) if (!pathShape.test(path)) throw invalid(`not a path of an output: ${shown(path)}`);
  for (const { path } of result.outputDirectories)
    if (path !== "" && !pathShape.test(path)) throw invalid(`not a path of an output: ${shown(path)}`);
}

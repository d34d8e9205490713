/**
 * Where the output of a command is when it has ended: its result names it (`output`, and the claim's `token`), and the
 * message of a failure does. For doors whose runners use TaskOutput.
 */
import { isDigest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import { outputIn } from "#worker/printed/failure-output.ts";
import { outputName } from "#worker/printed/task-output.ts";
import type { AttemptEnd, Printed, PrintedByDoor } from "./printed.ts";

export const printedByResult = (blobs: BlobStore): PrintedByDoor => ({
  names: [outputName],
  find: async (end) => printedBy(end, blobs),
});

function printedBy(end: AttemptEnd, blobs: BlobStore): Printed | undefined {
  if ("failure" in end) {
    const digest = outputIn(end.failure);
    return digest === undefined || !isDigest(digest) ? undefined : { streams: { [outputName]: digest }, blobs };
  }
  const { output, token } = readResult(end.result.payload);
  const streams = output !== undefined && isDigest(output) ? { [outputName]: output } : {};
  return { token, streams, blobs };
}

/** Of a task that runs no command, or of one that an older version ran, there is less. */
function readResult(payload: string): { readonly output?: string; readonly token?: number } {
  try {
    return JSON.parse(payload) as { readonly output?: string; readonly token?: number };
  } catch {
    return {};
  }
}

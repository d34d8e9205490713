/** Where the output of a command is when it has ended: the result names it, and the message of a failure does. */
import { isDigest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import { outputIn } from "#worker/printed/failure-output.ts";
import type { AttemptEnd, Printed, PrintedByDoor } from "#worker/follow/printed.ts";
import { outputName } from "#worker/printed/task-output.ts";
import type { CommandResult } from "./run.ts";

export const shellPrinted = (blobs: BlobStore): PrintedByDoor => ({
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

/** Of a sleep, or of a command that an older version ran, there is less. */
function readResult(payload: string): Partial<CommandResult> {
  try {
    return JSON.parse(payload) as Partial<CommandResult>;
  } catch {
    return {};
  }
}

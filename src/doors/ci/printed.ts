/** Where the log of a job is when it has ended: the result names it, and the message of a failure does. */
import { isDigest } from "#base/digest.ts";
import type { Store } from "#blobs/store.ts";
import type { AttemptEnd, Printed, PrintedByDoor } from "#worker/follow/printed.ts";
import { outputIn } from "#worker/printed/failure-output.ts";
import { logName } from "./job/log-sender.ts";
import { readCellResult } from "./result.ts";

export const ciPrinted = (store: Store): PrintedByDoor => ({
  names: [logName],
  find: async (end, tenant) => printedBy(end, tenant, store),
});

function printedBy(end: AttemptEnd, tenant: string, store: Store): Printed | undefined {
  const { blobs } = store.forTenant(tenant);
  if ("failure" in end) {
    const digest = outputIn(end.failure);
    return digest === undefined || !isDigest(digest) ? undefined : { streams: { [logName]: digest }, blobs };
  }
  const read = readCellResult(end.result.payload);
  if (read?.log === undefined || !isDigest(read.log)) return undefined;
  return { token: read.token, streams: { [logName]: read.log }, blobs };
}

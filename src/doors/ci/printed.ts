/** Where the log of a job is when it has ended: its result names it, or what a failed or cancelled attempt left. */
import { isDigest } from "#base/digest.ts";
import type { Store } from "#blobs/store.ts";
import type { AttemptEnd, Printed, PrintedByDoor } from "#worker/follow/printed.ts";
import { logName } from "./job/log/log-sender.ts";
import { readCellResult } from "./result.ts";

export const ciPrinted = (store: Store): PrintedByDoor => ({
  names: [logName],
  find: async (end, tenant) => printedBy(end, tenant, store),
});

function printedBy(end: AttemptEnd, tenant: string, store: Store): Printed | undefined {
  const { blobs } = store.forTenant(tenant);
  const result = "failure" in end ? end.left : end.result;
  const read = result && readCellResult(result.payload);
  if (read?.log === undefined || !isDigest(read.log)) return undefined;
  return { token: read.token, streams: { [logName]: read.log }, blobs };
}

import { Fault, type FaultFacts } from "#base/fault.ts";

/** When to retry on a full disk: the janitor needs seconds, people need minutes. */
export const retryAfterMs = 5_000;

/** Turns an error of the disk into a Fault: "exhausted" if it is full, otherwise "unavailable". */
export function asDiskFault(error: unknown, doing: string, facts: FaultFacts = {}): Fault {
  if (error instanceof Fault) return error;
  const errno = (error as NodeJS.ErrnoException).code;
  const full = errno === "ENOSPC" || errno === "EDQUOT";
  return new Fault(full ? "exhausted" : "unavailable", doing, { ...facts, errno, retryAfterMs }, error);
}

export const noSpace = (doing: string, facts: FaultFacts): Fault =>
  new Fault("exhausted", doing, { ...facts, retryAfterMs, why: "the store is full" });

/** Tells callers why nothing was evicted for them, and which settings change that. */
export const noSpaceBecause = (doing: string, promisedMs: number, facts: FaultFacts): Fault =>
  new Fault("exhausted", doing, {
    ...facts,
    retryAfterMs,
    why:
      `the store is full: blobs that were stored or used in the last ${shownTime(promisedMs)} are kept ` +
      "(blobs.promised), and so are those that results need; try again later, or raise blobs.sizeMax or shorten " +
      "blobs.promised",
  });

const shownTime = (ms: number): string =>
  ms < 120_000 ? `${Math.ceil(ms / 1_000)} s` : `${Math.ceil(ms / 60_000)} min`;

/** No write may be acknowledged any more, because bytes in removed files are lost. */
export const folderIsLost = (): Fault =>
  new Fault("unavailable", "write to the store", {
    why:
      "the store's folder was removed or replaced while the node was running; stop the node, put the folder back if " +
      "there is a copy, and start it again",
  });

/** For callers that still use the store after it was closed. */
export const storeIsClosed = (doing: string): Fault => new Fault("unavailable", doing, { why: "the store is closed" });

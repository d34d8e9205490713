import { Fault, type FaultFacts } from "#base/fault.ts";

/** When to come back to a disk that is full: the janitor needs some seconds, people need minutes. */
export const retryAfterMs = 5_000;

/** What the disk says, as a Fault: a full one is "exhausted", whatever else it may be is "unavailable". */
export function asDiskFault(error: unknown, doing: string, facts: FaultFacts = {}): Fault {
  if (error instanceof Fault) return error;
  const errno = (error as NodeJS.ErrnoException).code;
  const full = errno === "ENOSPC" || errno === "EDQUOT";
  return new Fault(full ? "exhausted" : "unavailable", doing, { ...facts, errno, retryAfterMs }, error);
}

export const noRoom = (doing: string, facts: FaultFacts): Fault =>
  new Fault("exhausted", doing, { ...facts, retryAfterMs, why: "the store is full" });

/** For callers: why nothing is evicted for them, and which settings change that. */
export const noRoomBecause = (doing: string, promisedMs: number, facts: FaultFacts): Fault =>
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

/** Nothing may be acknowledged any more: what is written to removed files is lost. */
export const folderIsLost = (): Fault =>
  new Fault("unavailable", "write to the store", {
    why:
      "the store's folder was removed or replaced while the node was running; stop the node, put the folder back if " +
      "there is a copy, and start it again",
  });

/** Whoever still has it in hand after it was closed. */
export const storeIsClosed = (doing: string): Fault => new Fault("unavailable", doing, { why: "the store is closed" });

/** What is new in the log is written only when every member of the cluster can read it. */
import type { Rejection } from "#kernel/model/rejection.ts";
import type { State } from "#kernel/model/state.ts";

/** The level of most events and fields that came after the first release and its references to texts. */
export const newestFeatures = 3;

/** Locks of single tasks. */
export const taskLocks = 4;

/** Templates that say for which reasons an attempt is followed by another. */
export const retriesByReason = 5;

/** Refuses what would write something new before the whole cluster can read it; `path` says what. */
export function tooNew(state: State, path: string, level: number = newestFeatures): Rejection | undefined {
  if (state.featureLevel >= level) return undefined;
  const why = `needs feature level ${level}, the cluster is at ${state.featureLevel}: upgrade its remaining nodes`;
  return { kind: "invalid", path, why };
}

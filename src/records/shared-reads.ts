/**
 * Records whose reads are shared: of many who ask the same at once, one asks the store. No caller gets an answer from
 * before its question (RC3): who asks while a read is under way waits for the next one.
 */
import { SharedRuns } from "#base/calls/shared-runs.ts";
import type { RecordStore } from "./records.ts";

export function sharedReads(store: RecordStore): RecordStore {
  const runs = new SharedRuns<unknown>();
  const shared =
    <A extends readonly unknown[], T>(op: string, read: (...args: A) => Promise<T>) =>
    (...args: A): Promise<T> =>
      runs.take(JSON.stringify([op, ...args]), () => read(...args)) as Promise<T>;
  return {
    ...store,
    read: shared("read", (id) => store.read(id)),
    list: shared("list", (query) => store.list(query)),
  };
}

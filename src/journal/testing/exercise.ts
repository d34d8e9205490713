/** The conformance suite: what every journal promises, however it is implemented. */
import { describe } from "node:test";
import { exerciseEntries } from "./entries.ts";
import { exerciseHistory } from "./history.ts";
import { exerciseLeases } from "./leases.ts";
import { exerciseLog } from "./log.ts";
import { exerciseSnapshots } from "./snapshots.ts";
import type { MakeStore } from "./support.ts";

export function exerciseJournal(
  name: string,
  makeStore: MakeStore,
  options: { readonly skip?: string | false } = {},
): void {
  describe(`journal ${name}`, { skip: options.skip ?? false, concurrency: 4 }, () => {
    exerciseLog(makeStore);
    exerciseLeases(makeStore);
    exerciseSnapshots(makeStore);
    exerciseHistory(makeStore);
    exerciseEntries(makeStore);
  });
}

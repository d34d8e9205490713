/** The conformance suite: what every journal promises, however it is implemented. */
import { describe } from "node:test";
import { exerciseEntries } from "./entries.ts";
import { exerciseHistory } from "./history.ts";
import { exerciseLeases } from "./leases.ts";
import { exerciseLog } from "./log.ts";
import { exerciseSnapshots } from "./snapshots.ts";
import { exerciseRecords } from "#records/testing/exercise.ts";
import { scene, type MakeStore } from "./support.ts";

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
    exerciseRecords((title, play) =>
      scene(makeStore, title, async (s) =>
        play({ one: s.journal.records, two: (await s.node()).records, advance: s.advance }),
      ),
    );
  });
}

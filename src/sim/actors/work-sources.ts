/** The nodes that a simulated worker's machine may ask for work: those that are alive by the journal's table. */
import type { Journal } from "#journal/journal.ts";
import type { DeskCalls } from "#sim/world/desks.ts";
import type { Life } from "#sim/world/machine.ts";
import type { WorkSource, WorkSources } from "#worker/visits/sources.ts";

export type WorkSourcesPorts = {
  readonly life: Life;
  readonly journal: Pick<Journal, "nodes">;
  readonly desks: DeskCalls;
};

/** How often the table is read: about as often as a node's keeper does. */
const readMs = 1_000;

export function workSources({ life, journal, desks }: WorkSourcesPorts): WorkSources {
  let known: ReadonlyMap<string, WorkSource> = new Map();
  const read = async (): Promise<void> => {
    const alive = (await journal.nodes()).filter((node) => node.alive && node.address !== "");
    known = new Map(alive.map(({ address }) => [address, desks.workAt(life, address)]));
  };
  void (async () => {
    // While the database does not answer, the nodes that were known are asked on.
    for (;;) {
      await read().catch(() => {});
      await life.clock.sleep(readMs);
    }
  })();
  return () => known;
}

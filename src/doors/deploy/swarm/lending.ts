/** Lends what may leave a rack to its machines, by what the trees have each of them send (swarm/lent.ts). */
import { lentShares, type Sender } from "#swarm/lent.ts";
import type { Priority } from "#swarm/uploads.ts";

/** One release's machines on this node. */
export type Spreading = {
  readonly priority: Priority;
  readonly members: readonly { readonly machine: string; readonly rack: string; readonly across: number }[];
};

/** By machine. One without a rack shares no link. */
export function lendRacks(bytesPerSecond: number, spreading: readonly Spreading[]): ReadonlyMap<string, number> {
  const racks = new Map<string, Map<string, Map<Priority, number>>>();
  for (const { priority, members } of spreading)
    for (const { machine, rack, across } of members) {
      if (rack === "") continue;
      const senders = racks.get(rack) ?? new Map<string, Map<Priority, number>>();
      racks.set(rack, senders);
      const flows = senders.get(machine) ?? new Map<Priority, number>();
      senders.set(machine, flows);
      if (across > 0) flows.set(priority, (flows.get(priority) ?? 0) + across);
    }
  const lent = new Map<string, number>();
  for (const senders of racks.values()) {
    const all = [...senders].map(([id, flows]): Sender<string> => ({ id, flows }));
    for (const [machine, rate] of lentShares(bytesPerSecond, all)) lent.set(machine, rate);
  }
  return lent;
}

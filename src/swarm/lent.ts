/**
 * One limit for several machines that send through the same link, such as the uplink of a rack. The node lends each of
 * them a part of it, by the flows that it has to send. Pure.
 *
 * LE1 The parts never add up to more than the limit.
 * LE2 Flows of the most urgent class have nearly all of it; the rest keep a little, so that none stands still.
 */
import type { Priority } from "./uploads.ts";

export type Sender<Id> = {
  readonly id: Id;
  /** Flows that go through the link, by class. */
  readonly flows: ReadonlyMap<Priority, number>;
};

/** Of the limit; shared by all alike, also by those without a flow, which may get one at any time. */
const evenShare = 0.1;

export function lentShares<Id>(bytesPerSecond: number, senders: readonly Sender<Id>[]): ReadonlyMap<Id, number> {
  const urgent = Math.min(...senders.flatMap(({ flows }) => [...flows.keys()])) as Priority;
  const flowsOf = ({ flows }: Sender<Id>): number => flows.get(urgent) ?? 0;
  const all = senders.reduce((sum, sender) => sum + flowsOf(sender), 0);
  const even = (bytesPerSecond * (all > 0 ? evenShare : 1)) / Math.max(1, senders.length);
  const byFlow = all > 0 ? (bytesPerSecond * (1 - evenShare)) / all : 0;
  return new Map(senders.map((sender) => [sender.id, even + byFlow * flowsOf(sender)]));
}

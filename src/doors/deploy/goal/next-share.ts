/**
 * How far a wave may go at once: while machines are on their way to the new version, only so many of a service and of
 * each rack may be. Pure.
 *
 * NS1 At least one machine moves, however small the limit is.
 * NS2 Machines that are done, well or not, make room for the next; those that are silent do not.
 */
import type { AtOnce } from "#doors/deploy/service/service-file.ts";
import { wholePpm } from "#doors/deploy/service/service-file.ts";

export type PlacedMachine = {
  /** Where it stands in the release (membership.ts). */
  readonly place: number;
  readonly rack: string | undefined;
  /** Whether it is done with the new version. */
  readonly isDone: boolean;
};

export type ShareQuestion = {
  /** All machines of the wave's regions. */
  readonly machines: readonly PlacedMachine[];
  /** The share that is activated now, and the one that the wave wants. */
  readonly fromPpm: number;
  readonly toPpm: number;
  readonly atOnce: AtOnce;
};

/** Without a limit the machines need not be known. */
export const isBounded = ({ service, rack }: AtOnce): boolean => service < wholePpm || rack < wholePpm;

export function nextShare({ machines, fromPpm, toPpm, atOnce }: ShareQuestion): number {
  if (!isBounded(atOnce)) return toPpm;
  const placed = machines.toSorted((a, b) => a.place - b.place);
  const room = new Room(placed, atOnce);
  for (const one of placed) if (one.place < fromPpm && !one.isDone) room.take(one.rack);
  let reached = fromPpm;
  for (const { place, rack } of placed) {
    if (place < fromPpm) continue;
    if (place >= toPpm) break;
    // Machines with one place move together.
    if (place >= reached && !room.has(rack)) return reached;
    room.take(rack);
    reached = place + 1;
  }
  return toPpm;
}

class Room {
  #left: number;
  readonly #racks = new Map<string, number>();

  constructor(placed: readonly { readonly rack: string | undefined }[], { service, rack: ofRack }: AtOnce) {
    this.#left = limitOf(placed.length, service);
    const sizes = new Map<string, number>();
    for (const { rack } of placed) if (rack !== undefined) sizes.set(rack, (sizes.get(rack) ?? 0) + 1);
    for (const [rack, size] of sizes) this.#racks.set(rack, limitOf(size, ofRack));
  }

  has(rack: string | undefined): boolean {
    return this.#left > 0 && (rack === undefined || (this.#racks.get(rack) ?? 1) > 0);
  }

  take(rack: string | undefined): void {
    this.#left -= 1;
    if (rack !== undefined) this.#racks.set(rack, (this.#racks.get(rack) ?? 1) - 1);
  }
}

/** NS1 */
const limitOf = (machines: number, ppm: number): number => Math.max(1, Math.floor((machines * ppm) / wholePpm));

/** Which machines are in a share. Pure: every node and every machine computes the same answer. */
import { createHash } from "node:crypto";
import { wholePpm } from "#doors/deploy/service/service-file.ts";

/**
 * A machine's place in a release, from 0 to just below a million. It depends on the release, so that not the same
 * machines are first every time; within a release it is fixed, so that waves only ever add machines.
 */
export function placeOf(machine: string, release: string): number {
  const hash = createHash("sha256").update(`${release}\0${machine}`).digest();
  return Number((hash.readBigUInt64BE() * BigInt(wholePpm)) >> 64n);
}

export const isInShare = (machine: string, release: string, sharePpm: number): boolean =>
  placeOf(machine, release) < sharePpm;

/**
 * The machines of a wave: those in the share, and at least the one with the lowest place, since a canary wave of a
 * small fleet must not be empty.
 */
export function membersOf(machines: readonly string[], release: string, sharePpm: number): readonly string[] {
  const members = machines.filter((machine) => isInShare(machine, release, sharePpm));
  if (members.length > 0 || machines.length === 0 || sharePpm === 0) return members;
  const [first] = machines.toSorted((a, b) => placeOf(a, release) - placeOf(b, release) || (a < b ? -1 : 1));
  return first === undefined ? [] : [first];
}

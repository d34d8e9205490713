/**
 * The machines of a wave as counts: each node counts those that are attached to it, and the wave's task adds the
 * nodes' counts up. So neither the task nor the kernel sees single machines, however many there are. Pure.
 *
 * TA1 A machine counts once. One whose stream a node holds is counted there; one that a node has only heard of is
 *     named, since it may be attached to another node by now, and its newest report decides.
 */
import { z } from "zod";
import { placeOf } from "#doors/deploy/goal/membership.ts";
import type { PlacedMachine } from "#doors/deploy/goal/next-share.ts";
import { Pin, pinOf } from "#doors/deploy/goal/pins.ts";
import { standingOf, type Counts, type Standing } from "#doors/deploy/health/judge.ts";
import type { Seen } from "./desk.ts";

export const TallyQuestion = z.object({
  tenant: z.string(),
  service: z.string(),
  labels: z.array(z.string()),
  /** The regions that the wave is about, with their pins. */
  regions: z.array(z.object({ region: z.string(), pins: z.array(Pin) })),
  release: z.string(),
  manifest: z.string(),
  sharePpm: z.number(),
  /** In the wave whatever their places are. */
  named: z.array(z.string()),
  activatedAgoMs: z.number(),
  silentAfterMs: z.number(),
  /** Whether to answer with each machine's place as well. */
  wantsPlaces: z.boolean(),
});
export type TallyQuestion = z.output<typeof TallyQuestion>;

/** A machine of the wave's targets. */
export type Standee = {
  readonly machine: string;
  readonly agoMs: number | null;
  readonly standing: Standing;
  readonly isMember: boolean;
  /** Whether it answers with the manifest, whatever it says of itself. */
  readonly isRunning: boolean;
};

export type Lowest = { readonly machine: string; readonly place: number };

export type Tally = Counts & {
  /** Machines that the service is for, whether they are in the wave or not. */
  readonly targets: number;
  /** Those of them that answer with the manifest. */
  readonly running: number;
  /** The one that is first in any wave. */
  readonly lowest: Lowest | null;
  /** Some that failed, for people. */
  readonly failures: readonly { readonly machine: string; readonly why: string }[];
  readonly racks: readonly string[];
  /** Of each target: place, rack by its index (-1: none), and 1 if it is done with the new version. */
  readonly places: readonly (readonly [number, number, 0 | 1])[];
  /** Those whose streams are not held here (TA1). */
  readonly away: readonly Standee[];
};

/** A machine as its node knows it. */
export type Known = Seen & {
  readonly isHeld: boolean;
  /** When it was last heard of. */
  readonly agoMs: number;
};

const failuresMax = 3;

export function tallyOf(machines: Iterable<Known>, question: TallyQuestion): Tally {
  const counts = { machines: 0, healthy: 0, failed: 0, silent: 0, working: 0 };
  const away: Standee[] = [];
  const racks: string[] = [];
  const places: [number, number, 0 | 1][] = [];
  const failures: Tally["failures"][number][] = [];
  let [targets, running, lowest]: [number, number, Lowest | null] = [0, 0, null];
  for (const one of machines) {
    const found = standeeOf(one, question);
    if (!found) continue;
    const { standee, place } = found;
    if (!lowest || isBefore({ machine: one.machine, place }, lowest)) lowest = { machine: one.machine, place };
    if (question.wantsPlaces) {
      const rack = rackOf(one);
      if (rack !== undefined && !racks.includes(rack)) racks.push(rack);
      places.push([place, rack === undefined ? -1 : racks.indexOf(rack), isDone(one, question) ? 1 : 0]);
    }
    if (standee.standing === "failed" && standee.isMember && failures.length < failuresMax)
      failures.push({ machine: one.machine, why: reportOf(one, question)?.why?.slice(0, 200) ?? "" });
    if (!one.isHeld) {
      away.push(standee);
      continue;
    }
    targets += 1;
    if (standee.isRunning) running += 1;
    if (standee.isMember) count(counts, standee.standing, 1);
  }
  return { ...counts, targets, running, lowest, failures, racks, places, away };
}

/** Those of the named machines whose streams are held here. */
export function heldOf(machines: Iterable<Known>, question: TallyQuestion, names: ReadonlySet<string>) {
  const held: Standee[] = [];
  for (const one of machines) {
    if (!one.isHeld || !names.has(one.machine)) continue;
    const found = standeeOf(one, question);
    if (found) held.push(found.standee);
  }
  return held;
}

/** What all nodes know together; `held` are those of the absent ones that some node holds after all. */
export function addUp(
  tallies: readonly Tally[],
  held: readonly Standee[],
): Omit<Tally, "away" | "racks" | "places"> & {
  readonly placed: readonly PlacedMachine[];
} {
  const counts = { machines: 0, healthy: 0, failed: 0, silent: 0, working: 0 };
  let [targets, running] = [0, 0];
  for (const tally of tallies) {
    targets += tally.targets;
    running += tally.running;
    for (const standing of ["healthy", "failed", "silent", "working"] as const)
      count(counts, standing, tally[standing]);
  }
  const holder = new Map(held.map((one) => [one.machine, one]));
  for (const one of newestOf(tallies.flatMap(({ away }) => away))) {
    const known = holder.get(one.machine);
    if (known && !isNewer(one, known)) continue;
    if (known?.isMember) count(counts, known.standing, -1);
    if (known?.isRunning) running -= 1;
    if (!known) targets += 1;
    if (one.isMember) count(counts, one.standing, 1);
    if (one.isRunning) running += 1;
  }
  return {
    ...counts,
    targets,
    running,
    lowest: tallies.flatMap(({ lowest }) => lowest ?? []).toSorted((a, b) => (isBefore(a, b) ? -1 : 1))[0] ?? null,
    failures: tallies.flatMap(({ failures }) => failures).slice(0, failuresMax),
    placed: tallies.flatMap(({ racks, places }) =>
      places.map(([place, rack, done]) => ({ place, rack: racks[rack], isDone: done === 1 })),
    ),
  };
}

export const namesAway = (tallies: readonly Tally[]): ReadonlySet<string> =>
  new Set(tallies.flatMap(({ away }) => away.map(({ machine }) => machine)));

function standeeOf(
  one: Known,
  question: TallyQuestion,
): { readonly standee: Standee; readonly place: number } | undefined {
  if (one.tenant !== question.tenant || !question.labels.every((label) => one.labels.includes(label))) return undefined;
  const region = question.regions.find((each) => each.region === one.region);
  if (!region || pinOf(one, region.pins)) return undefined; // PN2
  const { machine } = one;
  const place = placeOf(machine, question.release);
  const report = reportOf(one, question);
  const standee = {
    machine,
    agoMs: report?.agoMs ?? null,
    standing: standingOf(report, question),
    isMember: place < question.sharePpm || question.named.includes(machine),
    isRunning: report?.running === question.manifest,
  };
  return { standee, place };
}

const reportOf = ({ reports }: Seen, { service }: TallyQuestion) => reports.find((one) => one.service === service);

function isDone(one: Seen, question: TallyQuestion): boolean {
  const report = reportOf(one, question);
  if (!report) return false;
  const { state, running } = report;
  return state === "failed" || state === "reverted" || (state === "healthy" && running === question.manifest);
}

function newestOf(all: readonly Standee[]): Iterable<Standee> {
  const newest = new Map<string, Standee>();
  for (const one of all) {
    const known = newest.get(one.machine);
    if (!known || isNewer(one, known)) newest.set(one.machine, one);
  }
  return newest.values();
}

const isNewer = (a: Standee, b: Standee): boolean => (a.agoMs ?? Infinity) < (b.agoMs ?? Infinity);

const isBefore = (a: Lowest, b: Lowest): boolean => a.place < b.place || (a.place === b.place && a.machine < b.machine);

const rackOf = ({ labels }: Seen): string | undefined => labels.find((label) => label.startsWith("rack="));

function count(counts: { -readonly [K in keyof Counts]: number }, standing: Standing, by: number): void {
  counts.machines += by;
  counts[standing] += by;
}

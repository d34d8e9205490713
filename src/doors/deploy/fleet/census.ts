/**
 * A service's machines as counts for people: by region, by state and by wave. Each node counts its own, as for a wave's
 * verdict (tally.ts): what a page of a release costs does not grow with the fleet. Pure.
 *
 * CE1 A machine counts once: where its stream is held, else by its newest report.
 */
import { z } from "zod";
import { placeOf } from "#doors/deploy/goal/membership.ts";
import { shownState } from "#doors/deploy/view/machine-state.ts";
import type { Known } from "./tally.ts";

export const CensusQuestion = z.object({
  tenant: z.string(),
  service: z.string(),
  regions: z.array(z.string()),
  labels: z.array(z.string()),
  manifest: z.string().nullable(),
  silentAfterMs: z.number(),
  /** Whose waves these are: the places of machines depend on it. */
  release: z.string(),
  waves: z.array(z.object({ sharePpm: z.number(), regions: z.array(z.string()) })),
});
export type CensusQuestion = z.output<typeof CensusQuestion>;

/** One machine of a wave that does not run the version, for people. */
export type Behind = { readonly machine: string; readonly wave: number; readonly line: string };
type First = {
  readonly machine: string;
  readonly place: number;
  readonly keys: readonly string[];
  /** What is said of it where it does not run the version. */
  readonly late: string | null;
};

export type Counted = {
  readonly counts: Readonly<Record<string, number>>;
  /** What each machine counts as that this node has only heard of (CE1). */
  readonly away: readonly { readonly machine: string; readonly agoMs: number; readonly keys: readonly string[] }[];
  readonly behind: readonly Behind[];
  /** The first machine of each wave, which is in it whatever its place. */
  readonly firsts: readonly (First | null)[];
};

/** What all nodes know together. */
export type Census = {
  of(key: string): number;
  readonly behind: readonly Behind[];
  readonly firsts: readonly (Pick<First, "machine"> | null)[];
};

const behindMax = 10;

export const keys = {
  machines: (region: string): string => `machines ${region}`,
  running: (region: string): string => `running ${region}`,
  state: (region: string, state: string): string => `state ${region} ${state}`,
  member: (wave: number, region: string): string => `wave ${wave} ${region}`,
  memberRunning: (wave: number, region: string): string => `wave-running ${wave} ${region}`,
} as const;

export function countOf(known: Iterable<Known>, question: CensusQuestion): Counted {
  const counts: Record<string, number> = {};
  const away: Counted["away"][number][] = [];
  const behind: Behind[] = [];
  const firsts: (First | null)[] = question.waves.map(() => null);
  for (const one of known) {
    if (!isAbout(one, question)) continue;
    const place = placeOf(one.machine, question.release);
    const mine = [...keysOf(one, question)];
    for (const [wave, { sharePpm, regions }] of question.waves.entries()) {
      if (!regions.includes(one.region)) continue;
      const asMember = memberKeys(one, wave, question);
      const first = firsts[wave];
      const isLate = one.isHeld && asMember.length === 1;
      if (!first || place < first.place)
        firsts[wave] = { machine: one.machine, place, keys: asMember, late: isLate ? lineOf(one, question) : null };
      if (place >= sharePpm) continue;
      mine.push(...asMember);
      if (isLate && behind.filter((each) => each.wave === wave).length < behindMax)
        behind.push({ machine: one.machine, wave, line: lineOf(one, question) });
    }
    if (one.isHeld) for (const key of mine) counts[key] = (counts[key] ?? 0) + 1;
    else away.push({ machine: one.machine, agoMs: one.agoMs, keys: mine });
  }
  return { counts, away, behind, firsts };
}

/** `held`: those of the absent ones that some node holds after all. */
export function censusOf(all: readonly Counted[], held: ReadonlySet<string>, question: CensusQuestion): Census {
  const sums = new Map<string, number>();
  const add = (key: string, by: number): void => void sums.set(key, (sums.get(key) ?? 0) + by);
  for (const { counts } of all) for (const [key, count] of Object.entries(counts)) add(key, count);
  const newest = new Map<string, Counted["away"][number]>();
  for (const one of all.flatMap(({ away }) => away))
    if (!held.has(one.machine) && one.agoMs < (newest.get(one.machine)?.agoMs ?? Infinity))
      newest.set(one.machine, one);
  for (const one of newest.values()) for (const key of one.keys) add(key, 1);
  const firsts = question.waves.map((_, wave) => firstOf(all, wave));
  const behind = all.flatMap((one) => one.behind);
  for (const [wave, { sharePpm, regions }] of question.waves.entries()) {
    const first = firsts[wave];
    const isEmpty = regions.every((region) => (sums.get(keys.member(wave, region)) ?? 0) === 0);
    if (!first || !isEmpty || sharePpm === 0) continue;
    for (const key of first.keys) add(key, 1);
    if (first.late !== null) behind.push({ machine: first.machine, wave, line: first.late });
  }
  return { of: (key) => sums.get(key) ?? 0, behind, firsts };
}

const isAbout = (one: Known, { tenant, regions, labels }: CensusQuestion): boolean =>
  one.tenant === tenant && regions.includes(one.region) && labels.every((label) => one.labels.includes(label));

function* keysOf(one: Known, question: CensusQuestion): Generator<string> {
  const { region } = one;
  yield keys.machines(region);
  yield keys.state(region, shownState(one, question));
  if (isRunning(one, question)) yield keys.running(region);
}

const memberKeys = (one: Known, wave: number, question: CensusQuestion): readonly string[] => [
  keys.member(wave, one.region),
  ...(isRunning(one, question) ? [keys.memberRunning(wave, one.region)] : []),
];

const isRunning = ({ reports }: Known, { service, manifest }: CensusQuestion): boolean =>
  manifest !== null && reports.some((report) => report.service === service && report.running === manifest);

function lineOf(one: Known, question: CensusQuestion): string {
  const said = one.reports.find(({ service }) => service === question.service)?.why;
  const why = said === undefined ? "" : `: ${said.slice(0, 300)}`;
  return `${one.machine} (${one.region}) ${shownState(one, question)}${why}`;
}

const firstOf = (all: readonly Counted[], wave: number): First | null =>
  all.reduce<First | null>((least, { firsts }) => {
    const first = firsts[wave];
    return first && (!least || first.place < least.place) ? first : least;
  }, null);

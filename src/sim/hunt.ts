/** Runs seed after seed: counts what happened in them, and stops at the first that breaks a promise. */
import { count, newTally, type Tally } from "./check/court.ts";
import { Coverage, type Unreached } from "./coverage.ts";
import type { Focus } from "./profile.ts";
import { runSeed, type SeedResult } from "./run.ts";

export type HuntPlan = {
  readonly from: number;
  readonly step: number;
  readonly seeds: number;
  readonly untilMs: number;
  /** Every n-th seed is run twice and must give the same trace; 0 for none. */
  readonly doubleCheckEvery: number;
  readonly coverage: boolean;
  readonly focus: Focus;
};

export type Totals = {
  readonly seeds: number;
  readonly doubled: number;
  readonly simulatedMs: number;
  readonly turns: number;
  readonly tally: Record<keyof Tally, Record<string, number>>;
  readonly unreached: Unreached | undefined;
  readonly failure: Failure | undefined;
};

export type Failure = {
  readonly seed: number;
  readonly what: string;
  readonly lastLines: readonly string[];
};

/** `beginning` is called with every seed before it runs: otherwise a seed that ends the process would stay unknown. */
export async function hunt(plan: HuntPlan, wallMs: () => number, beginning: (seed: number) => void): Promise<Totals> {
  const coverage = plan.coverage ? await Coverage.begin() : undefined;
  const tally = newTally();
  let seeds = 0;
  let doubled = 0;
  let simulatedMs = 0;
  let turns = 0;
  let failure: Failure | undefined;
  for (
    let seed = plan.from;
    seeds < plan.seeds && failure === undefined && wallMs() < plan.untilMs;
    seed += plan.step
  ) {
    beginning(seed);
    const double = plan.doubleCheckEvery > 0 && seeds % plan.doubleCheckEvery === 0;
    const result = await runSeed(seed, { focus: plan.focus });
    failure = failureOf(result) ?? (double ? await differs(result, plan.focus) : undefined);
    seeds += 1;
    doubled += double ? 1 : 0;
    simulatedMs += result.simulatedMs;
    turns += result.turns;
    add(tally, result.tally);
  }
  const unreached = await coverage?.end();
  return { seeds, doubled, simulatedMs, turns, tally: plain(tally), unreached, failure };
}

export function failureOf({ seed, violation, lastLines }: SeedResult): Failure | undefined {
  return violation && { seed, what: `${violation.message} (at ${violation.atMs.toFixed(0)}ms)`, lastLines };
}

/** The second run of a seed must repeat the first one, line by line. */
export async function differs(first: SeedResult, focus: Focus = []): Promise<Failure | undefined> {
  const second = await runSeed(first.seed, { focus });
  if (second.hash === first.hash) return undefined;
  const what = `determinism: the second run gave trace ${second.hash}, the first ${first.hash}`;
  return { seed: first.seed, what, lastLines: second.lastLines };
}

function add(into: Tally, from: Tally): void {
  for (const kind of Object.keys(into) as (keyof Tally)[])
    for (const [name, times] of from[kind]) count(into[kind], name, times);
}

const plain = (tally: Tally): Totals["tally"] =>
  Object.fromEntries(Object.entries(tally).map(([kind, map]) => [kind, Object.fromEntries(map)])) as Totals["tally"];

export function merge(all: readonly Totals[]): Omit<Totals, "unreached"> {
  const tally = newTally();
  for (const one of all)
    for (const kind of Object.keys(tally) as (keyof Tally)[])
      for (const [name, times] of Object.entries(one.tally[kind])) count(tally[kind], name, times);
  const sum = (pick: (one: Totals) => number) => all.reduce((total, one) => total + pick(one), 0);
  return {
    seeds: sum(({ seeds }) => seeds),
    doubled: sum(({ doubled }) => doubled),
    simulatedMs: sum(({ simulatedMs }) => simulatedMs),
    turns: sum(({ turns }) => turns),
    tally: plain(tally),
    failure: all.find(({ failure }) => failure)?.failure,
  };
}

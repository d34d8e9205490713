/** What pools say about work that waits, as lines for people. Pure. */
import { offersOf } from "./demand.ts";
import type { PoolSettings } from "./pool-config.ts";
import type { PoolStanding } from "./standing.ts";

const problemsMax = 3;

export type WaitingWork = { readonly tenant: string; readonly requires: readonly string[] };

export function whyPools(
  pools: readonly PoolSettings[],
  standings: ReadonlyMap<string, PoolStanding>,
  { tenant, requires }: WaitingWork,
): readonly string[] {
  return pools.flatMap((pool) => {
    if (pool.tenant !== undefined && pool.tenant !== tenant) return [];
    const fitting = pool.templates.filter((template) => {
      const offers = new Set(offersOf(pool, template));
      return requires.every((label) => offers.has(label));
    });
    if (fitting.length === 0) return [];
    const standing = standings.get(pool.name);
    if (!standing) return [`pool ${pool.name} is to run it, and no node keeps that pool yet`];
    return linesOf(pool, standing, new Set(fitting.map(({ name }) => name)));
  });
}

function linesOf(
  { name, max }: PoolSettings,
  { counts, machines }: PoolStanding,
  templates: ReadonlySet<string>,
): readonly string[] {
  const { starting, idle, busy, leaving } = counts;
  const all = starting + idle + busy + leaving;
  const isFull = all >= max;
  const said = isFull
    ? `pool ${name} is at its ceiling: ${busy} of its ${max} machines are busy, ${leaving} are leaving`
    : `pool ${name} makes a machine for it: ${starting} are starting, ${busy} busy, ${idle} idle, ${max} at most`;
  const troubled = machines.filter(
    ({ template, work, problem }) => problem !== undefined && work === "none" && templates.has(template),
  );
  const problems = troubled
    .slice(0, problemsMax)
    .flatMap(({ name: machine, problem, events = [] }) => [
      `  ${machine}: ${problem?.reason}: ${problem?.message}`,
      ...events.map((event) => `    ${event}`),
    ]);
  return [said, ...problems];
}

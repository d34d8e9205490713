/** Serves /v1/usage. */
import { allTenants } from "#access/principal.ts";
import { showUsage, usageDaysMax } from "#api/usage.ts";
import type { Clock } from "#base/clock.ts";
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { Records } from "#records/watch.ts";
import type { Keeps } from "#retention/keeps.ts";
import { dayOf, usageOver, type Usage } from "#app/record/usage.ts";

export type UsageApiPorts = {
  readonly records: Records;
  readonly keeps: Pick<Keeps, "records">;
  readonly clock: Pick<Clock, "wallMs">;
  /** What an hour of a machine costs, by pool. */
  readonly prices: ReadonlyMap<string, number>;
};

const dayMs = 24 * 3_600_000;

export const usageRoutes = ({ records, keeps, clock, prices }: UsageApiPorts): readonly Route[] => [
  route(showUsage, async ({ caller, tenant, url, query }) => {
    const named = url.searchParams.get("tenant") ?? caller.principal.tenant;
    const of = named === allTenants ? undefined : tenant;
    const today = dayOf(clock.wallMs());
    const { from = `${today.slice(0, 8)}01`, to = today } = query;
    const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
    if (toMs < fromMs || toMs - fromMs >= usageDaysMax * dayMs)
      throw new Problem(400, `to: at most ${usageDaysMax} days, from the first to the last`);
    const used = await usageOver(records, { tenant: of, fromMs, toMs });
    const sums = summed(used, query.by, prices);
    // What is kept is known by door alone.
    const kept = query.by === "door" ? await keptBy(keeps, of) : new Map<string, KeptSum>();
    for (const key of kept.keys()) if (!sums.has(key)) sums.set(key, { ...ownerIn(key), ...noCounts });
    const items = [...sums]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, { slotMs, cpuMs, repository, pool, cost, ...one }]) => ({
        ...one,
        ...(query.by === "repository" && repository !== "" && { repository }),
        ...(query.by === "pool" && pool !== "" && { pool }),
        slotSeconds: slotMs / 1_000,
        cpuSeconds: cpuMs / 1_000,
        keptBytes: kept.get(key)?.bytes ?? 0,
        keptNames: kept.get(key)?.names ?? 0,
        ...(cost > 0 && { cost: Math.round(cost * 10_000) / 10_000 }),
      }));
    return { body: { from, to, items } };
  }),
];

type By = "door" | "repository" | "pool";
type KeptSum = { bytes: number; names: number };
type Summed = Usage & { readonly cost: number };

const noCounts = { slotMs: 0, cpuMs: 0, tasks: 0, attempts: 0, outputBytes: 0, cost: 0, repository: "", pool: "" };
const hourMs = 3_600_000;

const keyOf = ({ tenant, door }: Pick<Usage, "tenant" | "door">, of = ""): string => JSON.stringify([tenant, door, of]);

function ownerIn(key: string): Pick<Usage, "tenant" | "door"> {
  const [tenant = "", door = ""] = JSON.parse(key) as readonly string[];
  return { tenant, door };
}

function summed(used: readonly Usage[], by: By, prices: UsageApiPorts["prices"]): Map<string, Summed> {
  const sums = new Map<string, Summed>();
  for (const one of used) {
    const key = keyOf(one, by === "door" ? "" : one[by]);
    const known = sums.get(key) ?? { ...one, ...noCounts, repository: one.repository, pool: one.pool };
    sums.set(key, {
      ...known,
      slotMs: known.slotMs + one.slotMs,
      cpuMs: known.cpuMs + one.cpuMs,
      tasks: known.tasks + one.tasks,
      attempts: known.attempts + one.attempts,
      outputBytes: known.outputBytes + one.outputBytes,
      cost: known.cost + (one.slotMs / hourMs) * (prices.get(one.pool) ?? 0),
    });
  }
  return sums;
}

async function keptBy({ records }: Pick<Keeps, "records">, tenant: string | undefined) {
  const sums = new Map<string, KeptSum>();
  let cursor: string | undefined;
  do {
    const page = await records.list({ tenant, limit: 1_000, cursor });
    for (const { tenant: of, value } of page.records) {
      const key = keyOf({ tenant: of, door: value.door });
      const known = sums.get(key) ?? { bytes: 0, names: 0 };
      sums.set(key, { bytes: known.bytes + value.bytes, names: known.names + 1 });
    }
    ({ cursor } = page);
  } while (cursor !== undefined);
  return sums;
}

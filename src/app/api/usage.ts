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
};

const dayMs = 24 * 3_600_000;

export const usageRoutes = ({ records, keeps, clock }: UsageApiPorts): readonly Route[] => [
  route(showUsage, async ({ caller, tenant, url, query }) => {
    const named = url.searchParams.get("tenant") ?? caller.principal.tenant;
    const of = named === allTenants ? undefined : tenant;
    const today = dayOf(clock.wallMs());
    const { from = `${today.slice(0, 8)}01`, to = today } = query;
    const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
    if (toMs < fromMs || toMs - fromMs >= usageDaysMax * dayMs)
      throw new Problem(400, `to: at most ${usageDaysMax} days, from the first to the last`);
    const used = await usageOver(records, { tenant: of, fromMs, toMs });
    const kept = await keptBy(keeps, of);
    const keys = new Set([...used.map(keyOf), ...kept.keys()]);
    const items = [...keys].toSorted().map((key) => {
      const [ofTenant = "", door = ""] = JSON.parse(key) as readonly string[];
      const found = used.find((one) => keyOf(one) === key);
      const { slotMs = 0, tasks = 0, attempts = 0, outputBytes = 0 } = found ?? {};
      const { bytes: keptBytes = 0, names: keptNames = 0 } = kept.get(key) ?? {};
      return {
        tenant: ofTenant,
        door,
        slotSeconds: slotMs / 1_000,
        tasks,
        attempts,
        outputBytes,
        keptBytes,
        keptNames,
      };
    });
    return { body: { from, to, items } };
  }),
];

const keyOf = ({ tenant, door }: Pick<Usage, "tenant" | "door">): string => JSON.stringify([tenant, door]);

async function keptBy({ records }: Pick<Keeps, "records">, tenant: string | undefined) {
  const sums = new Map<string, { bytes: number; names: number }>();
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

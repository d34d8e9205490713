/** Serves /v1/kept. */
import { listKept } from "#api/kept.ts";
import { route, type Route } from "#http/route.ts";
import type { Keeps } from "#retention/keeps.ts";

export const keptRoutes = ({ records }: Pick<Keeps, "records">): readonly Route[] => [
  route(listKept, async ({ tenant, query: { limit, cursor, prefix } }) => {
    const page = await records.list({ tenant, limit, cursor, prefix });
    const items = page.records.map(({ name, value: { door, about, bytes, untilMs, lostAtMs } }) => ({
      name,
      door,
      about,
      bytes,
      until: timeOf(untilMs),
      ...(lostAtMs !== undefined && { lostAt: timeOf(lostAtMs) }),
    }));
    return { body: { items, ...(page.cursor !== undefined && { next: page.cursor }) } };
  }),
];

const timeOf = (ms: number): string => new Date(ms).toISOString();

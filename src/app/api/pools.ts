/** Serves /v1/pools from the records that the nodes keeping them write: any node answers. */
import { desiredOfPool, listPools, showPool } from "#api/pools.ts";
import { allTenants } from "#access/principal.ts";
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { PoolSettings } from "#pools/pool-config.ts";
import { standingOwner, type PoolStanding, type Standings } from "#pools/standing.ts";

export type PoolRoutePorts = { readonly pools: readonly PoolSettings[]; readonly standings: Standings };

export const poolRoutes = ({ pools, standings }: PoolRoutePorts): readonly Route[] => {
  /** Another tenant's pool does not exist (VT1). */
  const isSeen = ({ tenant }: PoolSettings, by: string): boolean =>
    by === allTenants || tenant === undefined || tenant === by;
  const standingOf = async (name: string): Promise<PoolStanding | undefined> =>
    (await standings.read(standingOwner, name))?.value;
  const found = async (name: string, by: string) => {
    const pool = pools.find((one) => one.name === name && isSeen(one, by));
    if (!pool) throw new Problem(404, "pool: there is no such pool; list them with GET /v1/pools");
    return { pool, standing: await standingOf(name) };
  };
  return [
    route(listPools, async ({ caller }) => {
      const own = pools.filter((pool) => isSeen(pool, caller.principal.tenant));
      const items = await Promise.all(own.map(async (pool) => shownPool(pool, await standingOf(pool.name))));
      return { body: { items } };
    }),
    route(showPool, async ({ caller: { principal }, params: { pool: name } }) => {
      const { pool, standing } = await found(name, principal.tenant);
      const isWhole = principal.tenant === allTenants || pool.tenant !== undefined;
      const machines = (standing?.machines ?? []).map(({ ageMs, task, ...machine }) => ({
        ...machine,
        ageSeconds: Math.round(ageMs / 1_000),
        ...(isWhole && task !== undefined && { task }),
      }));
      return { body: { ...shownPool(pool, standing), machines } };
    }),
    route(desiredOfPool, async ({ caller, params: { pool: name } }) => {
      const { pool, standing } = await found(name, caller.principal.tenant);
      return { body: { pool: name, ...countsOf(pool, standing) } };
    }),
  ];
};

const none = { starting: 0, idle: 0, busy: 0, leaving: 0 };

const countsOf = ({ max }: PoolSettings, standing: PoolStanding | undefined) => ({
  max,
  desired: standing?.desired ?? 0,
  waiting: standing?.waiting ?? 0,
  running: standing?.running ?? 0,
  ...(standing?.counts ?? none),
  oldestWaitSeconds: (standing?.oldestForMs ?? 0) / 1_000,
});

const shownPool = (pool: PoolSettings, standing: PoolStanding | undefined) => ({
  pool: pool.name,
  kind: pool.kind,
  ...(pool.tenant !== undefined && { tenant: pool.tenant }),
  spot: pool.kind === "kubernetes" && pool.spot,
  templates: pool.templates.map(({ name, runsOn, warm }) => ({
    name,
    runsOn,
    warm,
    desired: standing?.desiredBy[name] ?? 0,
  })),
  ...countsOf(pool, standing),
  ...(standing && { seenAt: new Date(standing.atMs).toISOString(), node: standing.node }),
});

/** This door's part of the table of routes: builds, why, and the upkeep of its cache. */
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Upkeep } from "#blobs/upkeep.ts";
import { cacheRoutes } from "#doors/build/admin/routes.ts";
import { buildsRoutes } from "#doors/build/builds/routes.ts";
import { BuildsService, type BuildsPorts } from "#doors/build/builds/service.ts";
import { TrustRules } from "#doors/build/cache/trust-rules.ts";
import { whyRoutes } from "#doors/build/why/routes.ts";
import type { Seen } from "#doors/build/why/seen.ts";
import type { Route } from "#http/route.ts";

export type TablePorts = Omit<BuildsPorts, "execution"> & {
  readonly index: ActionIndex;
  readonly seen: Seen;
  /** Left out: the store is looked after elsewhere. */
  readonly upkeep?: Upkeep | undefined;
  /** Left out: it is a cache only. */
  readonly execution?: BuildsPorts["execution"] | undefined;
};

export function buildTable({ execution, upkeep, ...ports }: TablePorts): readonly Route[] {
  const trust = new TrustRules(ports.index);
  const { blobBytesMax } = ports.settings;
  const upkept = upkeep ? cacheRoutes({ ...ports, upkeep, trust, blobBytesMax }) : [];
  if (!execution) return upkept;
  const builds = new BuildsService({ ...ports, execution });
  return [...buildsRoutes(builds), ...whyRoutes({ ...ports, client: execution.client, builds, trust }), ...upkept];
}

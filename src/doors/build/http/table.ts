/** This door's part of the table of routes: builds, why, and the upkeep of its cache. */
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Upkeep } from "#blobs/upkeep.ts";
import { cacheRoutes } from "#doors/build/admin/routes.ts";
import { buildsRoutes } from "#doors/build/builds/routes.ts";
import type { BuildsPorts, BuildsService } from "#doors/build/builds/service.ts";
import type { TrustRules } from "#doors/build/cache/trust-rules.ts";
import { whyRoutes } from "#doors/build/why/routes.ts";
import type { Seen } from "#doors/build/why/seen.ts";
import type { Route } from "#http/route.ts";

export type TablePorts = Omit<BuildsPorts, "execution"> & {
  readonly index: ActionIndex;
  readonly seen: Seen;
  /** Left out: the store is looked after elsewhere. */
  readonly upkeep?: Upkeep | undefined;
  /** Left out, and `builds` with it: the door is only a cache. */
  readonly execution?: BuildsPorts["execution"] | undefined;
  readonly builds?: BuildsService | undefined;
  readonly trust: TrustRules;
};

export function buildTable({ execution, builds, trust, upkeep, ...ports }: TablePorts): readonly Route[] {
  const { blobBytesMax } = ports.settings;
  const upkept = upkeep ? cacheRoutes({ ...ports, upkeep, trust, blobBytesMax }) : [];
  if (!execution || !builds) return upkept;
  return [...buildsRoutes(builds), ...whyRoutes({ ...ports, client: execution.client, builds, trust }), ...upkept];
}

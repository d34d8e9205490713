/** Everything that this door declares for the table of routes: builds, why, and the upkeep of its cache. */
import { cacheEndpoints } from "#doors/build/admin/endpoints.ts";
import { buildsEndpoints } from "#doors/build/builds/endpoints.ts";
import { showWhy } from "#doors/build/why/endpoints.ts";
import type { Endpoint } from "#http/endpoint.ts";

export const buildEndpoints: readonly Endpoint[] = [...buildsEndpoints, showWhy, ...cacheEndpoints];

import { allTenants } from "#access/principal.ts";
import type { EndpointDeclaration } from "#http/endpoint.ts";
import type { Call } from "#http/route.ts";

export type Scoped = Pick<Call<EndpointDeclaration>, "caller" | "tenant" | "url">;

/** Whose work is meant: the tenant that was named, or all that the caller may see. Undefined: every tenant's. */
export function scopeOf({ caller: { principal }, tenant, url }: Scoped): string | undefined {
  const named = url.searchParams.get("tenant") ?? principal.tenant;
  return named === allTenants ? undefined : tenant;
}

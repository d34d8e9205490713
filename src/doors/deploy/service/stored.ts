/**
 * Service files that a release carries, as an earlier version of the program may have stored them: what service files
 * could not say then is filled in, so that a release that was under way during an upgrade goes on.
 */
import { wholePpm, type ServiceFile } from "./service-file.ts";

type Later = "atOnce" | "notBefore";
type Stored = Omit<ServiceFile, "health" | Later> &
  Partial<Pick<ServiceFile, Later>> & {
    readonly health: Omit<ServiceFile["health"], "checks"> & Partial<Pick<ServiceFile["health"], "checks">>;
  };

export const storedService = (stored: Stored): ServiceFile => ({
  ...stored,
  atOnce: stored.atOnce ?? { service: wholePpm, rack: wholePpm },
  notBefore: stored.notBefore ?? [],
  health: { ...stored.health, checks: stored.health.checks ?? [] },
});

/** A spec of this door that holds a service file. */
export function specWithService<T extends { readonly service: ServiceFile }>(text: string): T {
  const spec = JSON.parse(text) as T;
  return { ...spec, service: storedService(spec.service) };
}

/**
 * What the cluster knows of each service: the targets of its newest release, and which services come before it.
 *
 * SB1 No release is accepted that would close a circle of services which wait for each other.
 */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import type { Release } from "#doors/deploy/plan.ts";

const Service = z.object({
  regions: z.array(z.string()),
  notBefore: z.array(z.string()),
  sha: z.string(),
  atMs: z.number(),
});
export type KnownService = z.output<typeof Service>;

const limits = { countMax: 10_000, bytesMax: 10_000 * 10_000 };
const listMax = 1_000;

export class ServiceBook {
  readonly #services;
  readonly #clock: Pick<Clock, "wallMs">;

  constructor(records: Records, clock: Pick<Clock, "wallMs">) {
    this.#services = recordsOf(records, { kind: "deploy.service", schema: Service, limits });
    this.#clock = clock;
  }

  /** Before the release is submitted. */
  async enter(tenant: string, { service, sha }: Release): Promise<void> {
    const { service: name, notBefore, targets } = service;
    const circle = await this.#circle(tenant, name, notBefore);
    if (circle)
      throw new Fault("invalid", "release", {
        service: name,
        why: `services wait for each other: ${circle.join(" before ")}`,
        try: "take one of them out of notBefore",
      });
    const value = { regions: [...targets.regions], notBefore: [...notBefore], sha, atMs: this.#clock.wallMs() };
    const { created } = await this.#services.create(tenant, name, value);
    if (!created) await this.#services.update(tenant, name, () => value);
  }

  async find(tenant: string, name: string): Promise<KnownService | undefined> {
    return (await this.#services.read(tenant, name))?.value;
  }

  async list(tenant: string): Promise<readonly (KnownService & { readonly service: string })[]> {
    const { records } = await this.#services.list({ tenant, limit: listMax });
    return records.map(({ name, value }) => ({ service: name, ...value }));
  }

  /** The services on the way from `name` back to itself (SB1). */
  async #circle(tenant: string, name: string, notBefore: readonly string[]): Promise<readonly string[] | undefined> {
    const seen = new Set<string>();
    const search = async (path: readonly string[], next: readonly string[]): Promise<readonly string[] | undefined> => {
      for (const service of next) {
        if (service === name) return [service, ...path];
        if (seen.has(service)) continue;
        seen.add(service);
        const found = await search([service, ...path], (await this.find(tenant, service))?.notBefore ?? []);
        if (found) return found;
      }
      return undefined;
    };
    return await search([name], notBefore);
  }
}

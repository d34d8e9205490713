/**
 * How much a tenant's machines may send to each other, changeable while releases spread: machines hear of it with the
 * answer to their next report, and with each answer about a release.
 */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { recordsOf } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { fleetCapsAsJson, fleetCapsFromJson, noFleetCaps, type FleetCaps } from "#doors/deploy/swarm/caps.ts";

const Rate = z.number().min(0).nullable();
const Kept = z.object({
  host: Rate,
  rack: Rate,
  wan: Rate,
  rackLink: Rate.default(null),
  wanLink: Rate.default(null),
  by: z.string(),
  atMs: z.number(),
});

const name = "fleet";
/** Every report asks: the record is read once in this time. */
const rememberedMs = 1_000;

export class CapsBook {
  readonly #caps;
  readonly #clock: Pick<Clock, "monotonicMs" | "wallMs">;
  readonly #known = new Map<string, { readonly caps: Promise<FleetCaps>; readonly atMs: number }>();

  constructor(records: Records, clock: Pick<Clock, "monotonicMs" | "wallMs">) {
    this.#caps = recordsOf(records, { kind: "deploy.caps", schema: Kept, limits: { countMax: 10, bytesMax: 10_000 } });
    this.#clock = clock;
  }

  async of(tenant: string): Promise<FleetCaps> {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#known.get(tenant);
    if (known && nowMs - known.atMs < rememberedMs) return await known.caps;
    const caps = this.#read(tenant);
    this.#known.set(tenant, { caps, atMs: nowMs });
    // A failed read is not remembered.
    caps.catch(() => this.#known.delete(tenant));
    return await caps;
  }

  async set(tenant: string, caps: FleetCaps, by: string): Promise<void> {
    const value = { ...fleetCapsAsJson(caps), by, atMs: this.#clock.wallMs() };
    const { created } = await this.#caps.create(tenant, name, value);
    if (!created) await this.#caps.update(tenant, name, () => value);
    this.#known.delete(tenant);
  }

  async #read(tenant: string): Promise<FleetCaps> {
    const found = await this.#caps.read(tenant, name);
    return found ? fleetCapsFromJson(found.value) : noFleetCaps;
  }
}

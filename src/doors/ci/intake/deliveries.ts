/**
 * Deliveries of forges, as records of the cluster: written before they are acknowledged, worked on afterwards.
 *
 * IN1 What was acknowledged is worked on, whichever nodes die; until it was, it waits.
 * IN2 The same delivery is worked on once, however often it is sent within a week: later copies find its record. Pushes
 *     and pull requests are known by their bodies, so that a copy with another id is none, either.
 * IN3 At most `deliveriesMax` are kept for a tenant; when as many wait, more are refused, and the forge tries again.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import type { BlobStore } from "#blobs/store.ts";
import { recordsOf, type Typed } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { allPages } from "#doors/ci/runs/all-pages.ts";
import { recall, writeText } from "#doors/ci/runs/texts.ts";
import { forges } from "./forge.ts";

export const deliveriesMax = 10_000;
const keptMs = 7 * 24 * 3_600_000;

const Delivery = z.object({
  repository: z.string(),
  /** "node": an event of this cluster's own. */
  forge: z.enum([...forges, "node"]),
  event: z.string(),
  id: z.string(),
  body: z.string(),
  atMs: z.number(),
  tries: z.int().default(0),
  handledMs: z.number().optional(),
  started: z.array(z.string()).optional(),
  /** Why nothing started. */
  why: z.string().optional(),
});
export type Delivery = z.output<typeof Delivery>;
export type KeptDelivery = Typed<Delivery>;

export type Coming = Pick<Delivery, "repository" | "forge" | "event" | "id"> & { readonly payload: unknown };

const knownByBody: ReadonlySet<string> = new Set([
  "push",
  "pull_request",
  "create",
  "delete",
  "merge_group",
  "Push Hook",
  "Tag Push Hook",
  "Merge Request Hook",
]);

export class Deliveries {
  readonly #kept;
  readonly #blobs: BlobStore;
  readonly #clock: Clock;

  constructor({
    records,
    blobs,
    clock,
  }: {
    readonly records: Records;
    readonly blobs: BlobStore;
    readonly clock: Clock;
  }) {
    const limits = { countMax: deliveriesMax, bytesMax: 64 * 1024 * 1024 };
    this.#kept = recordsOf(records, { kind: "ci.delivery", schema: Delivery, limits });
    this.#blobs = blobs;
    this.#clock = clock;
  }

  /** Returns when it is durable. False: it was there. */
  async accept(
    tenant: string,
    { payload, ...coming }: Coming,
  ): Promise<{ readonly created: boolean; readonly name: string }> {
    const text = JSON.stringify(payload);
    const name = nameOf(coming, text);
    if (await this.#kept.read(tenant, name)) return { created: false, name };
    const value = { ...coming, body: await writeText(this.#blobs, text), atMs: this.#clock.wallMs() };
    try {
      return { created: (await this.#kept.create(tenant, name, value)).created, name };
    } catch (error) {
      if ((await this.forget(tenant, deliveriesMax / 10)) === 0) throw error;
      return { created: (await this.#kept.create(tenant, name, value)).created, name };
    }
  }

  async payload({ value }: KeptDelivery): Promise<unknown> {
    return await recall(this.#blobs, { blob: value.body });
  }

  watch(signal: AbortSignal) {
    return this.#kept.watch({}, signal);
  }

  async handled(delivery: KeptDelivery, end: Pick<Delivery, "started" | "why">): Promise<void> {
    await this.#kept.replace(delivery, { ...delivery.value, ...end, handledMs: this.#clock.wallMs() });
  }

  async failed(delivery: KeptDelivery, why: string): Promise<void> {
    await this.#kept.replace(delivery, { ...delivery.value, tries: delivery.value.tries + 1, why });
  }

  /** Of one repository, the newest first. */
  async list(tenant: string, repository: string): Promise<readonly KeptDelivery[]> {
    const all = await allPages(this.#kept, tenant);
    const own = all.filter(({ value }) => value.repository.toLowerCase() === repository.toLowerCase());
    return own.toSorted((a, b) => b.value.atMs - a.value.atMs).slice(0, 100);
  }

  /** Removes what was handled a week ago; where that is not enough, the oldest of what was handled. */
  async forget(tenant: string, atLeast = 0): Promise<number> {
    const handled = (await allPages(this.#kept, tenant)).filter(({ value }) => value.handledMs !== undefined);
    const oldest = handled.toSorted((a, b) => (a.value.handledMs ?? 0) - (b.value.handledMs ?? 0));
    const untilMs = this.#clock.wallMs() - keptMs;
    let removed = 0;
    for (const { name, value, version } of oldest) {
      if ((value.handledMs ?? 0) > untilMs && removed >= atLeast) break;
      if (await this.#kept.remove(tenant, name, version)) removed += 1;
    }
    return removed;
  }
}

function nameOf({ repository, forge, event, id }: Omit<Coming, "payload">, text: string): string {
  const known = knownByBody.has(event) && forge !== "node" ? text : id;
  const words = JSON.stringify([repository.toLowerCase(), forge, event, known]);
  return createHash("sha256").update(words).digest("hex").slice(0, 48);
}

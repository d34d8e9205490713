/**
 * What is kept until a declared time: blobs of a tenant under a name, as records that all nodes share. Pins of the
 * store are short and renewed by the keeper (keeper.ts), so that a store that limits pins keeps things for as long as
 * their time says, and what is dropped early is free early.
 *
 * RT1 Blobs are pinned before their name is recorded: what is listed as kept is there.
 * RT2 No pin for a name ends after the name's time: from then on the store may evict its blobs.
 */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { digestSizeBytes, isDigest, type Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import { recordsOf, type TypedRecords } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";

const DigestText = z.string().refine(isDigest, "not a digest");

export const Keep = z.object({
  /** The door that keeps it, for usage and for people. */
  door: z.string().max(100),
  /** One line for people. */
  about: z.string().max(400),
  untilMs: z.number(),
  digests: z.array(DigestText).max(1_000),
  /** Blobs with a digest a line: they and all that they name are kept. */
  lists: z.array(DigestText).max(10),
  /** Of all that is kept, where equal blobs count once. */
  bytes: z.number(),
  /** Records that go with it when its time is over. */
  drops: z.array(z.object({ kind: z.string(), name: z.string() })).max(4),
  /** When some of its blobs were found to be gone, although they should not be. */
  lostAtMs: z.number().optional(),
});
export type Keep = z.output<typeof Keep>;

export type KeepRequest = Pick<Keep, "door" | "about" | "untilMs"> &
  Partial<Pick<Keep, "digests" | "lists" | "drops">> & {
    readonly tenant: string;
    /** Unique in the tenant; keeping under the same name again replaces it. */
    readonly name: string;
  };

export type Pins = (tenant: string) => Pick<BlobStore, "pin" | "read">;

export type KeepPorts = { readonly records: Records; readonly pins: Pins; readonly clock: Clock };

const kind = "kept";
const limits = { countMax: 100_000, bytesMax: 256 * 1024 * 1024 };
/** A pin lasts for this long; half of it is left when it is renewed. */
export const pinSliceMs = 48 * 3_600_000;
const sliceMsMin = 3_600_000;
const listBytesMax = 4 * 1024 * 1024;

export const keepRecords = (records: Records): TypedRecords<Keep> => recordsOf(records, { kind, schema: Keep, limits });

export class Keeps {
  readonly #ports: KeepPorts;
  readonly records: TypedRecords<Keep>;
  /** Shorter where the store refuses longer pins. */
  #sliceMs = pinSliceMs;

  constructor(ports: KeepPorts) {
    this.#ports = ports;
    this.records = keepRecords(ports.records);
  }

  get sliceMs(): number {
    return this.#sliceMs;
  }

  /** Throws Fault "not-found" if a blob is missing, and "invalid" if the time is over. */
  async keep({ tenant, name, digests = [], lists = [], drops = [], ...rest }: KeepRequest): Promise<void> {
    const all = await this.#allOf(tenant, { digests, lists });
    const bytes = all.reduce((sum, digest) => sum + digestSizeBytes(digest), 0);
    const keep: Keep = { ...rest, digests: [...digests], lists: [...lists], drops: [...drops], bytes };
    if (keep.untilMs <= this.#ports.clock.wallMs())
      throw new Fault("invalid", "keep blobs", { name: name.slice(0, 100), why: "its time is over" });
    if ((await this.pin(tenant, keep)) === undefined)
      throw new Fault("not-found", "keep blobs", { name: name.slice(0, 100), why: "not all of them are in the store" });
    for (;;) {
      const { created, record } = await this.records.create(tenant, name, keep);
      if (created || (await this.records.replace(record, keep))) return;
    }
  }

  /** Its blobs may go when their last pin has ended. */
  async drop(tenant: string, name: string): Promise<boolean> {
    return await this.records.remove(tenant, name);
  }

  /** Until when its blobs are pinned now; undefined if some of them are gone. */
  async pin(tenant: string, keep: Pick<Keep, "digests" | "lists" | "untilMs">): Promise<number | undefined> {
    const { pins, clock } = this.#ports;
    const nowMs = clock.wallMs();
    try {
      const all = await this.#allOf(tenant, keep);
      const untilMs = await this.pinAll(pins(tenant), all, keep.untilMs, nowMs);
      return untilMs;
    } catch (error) {
      if (isFault(error, "not-found")) return undefined;
      throw error;
    }
  }

  /** In slices: some stores promise nothing beyond their own lifetime of objects. */
  async pinAll(
    blobs: Pick<BlobStore, "pin">,
    digests: readonly Digest[],
    untilMs: number,
    nowMs: number,
  ): Promise<number | undefined> {
    if (digests.length === 0) return untilMs;
    for (;;) {
      const forMs = Math.max(1, Math.min(this.#sliceMs, untilMs - nowMs));
      try {
        return "missing" in (await blobs.pin(digests, forMs)) ? undefined : nowMs + forMs;
      } catch (error) {
        if (!isFault(error, "invalid") || forMs <= sliceMsMin) throw error;
        this.#sliceMs = Math.max(sliceMsMin, Math.floor(forMs / 2));
      }
    }
  }

  async #allOf(tenant: string, { digests, lists }: Pick<Keep, "digests" | "lists">): Promise<readonly Digest[]> {
    const all = new Set<Digest>([...digests, ...lists]);
    for (const list of lists) for (const digest of await this.#listed(tenant, list)) all.add(digest);
    return [...all];
  }

  async #listed(tenant: string, list: Digest): Promise<readonly Digest[]> {
    if (digestSizeBytes(list) > listBytesMax)
      throw new Fault("invalid", "keep blobs", { list, why: "the list is too long" });
    const parts: Uint8Array[] = [];
    for await (const part of this.#ports.pins(tenant).read(list)) parts.push(Uint8Array.from(part));
    return Buffer.concat(parts).toString().split("\n").filter(isDigest);
  }
}

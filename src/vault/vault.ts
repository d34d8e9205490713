/**
 * Values that are kept encrypted, as records: what the database, its copies and its administrators see of one is its
 * name, its size and the id of a key.
 *
 * VA1 A value is never written, logged or shown in the clear; `read` is for the code that uses it.
 * VA2 A value opens only for the tenant and the name that it was set for.
 * VA3 While a key changes, every value can be read: the old keys stay in the list until `rotate` has wrapped all values
 *     with the first one.
 */
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { recordsOf, type Typed } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";
import { rewrap, seal, unseal, type WrappingKey } from "./envelope.ts";
import type { KeyList } from "./key-list.ts";
import type { KeySource } from "./key-source.ts";

export const secretBytesMax = 64 * 1024;
export const secretsMax = 1_000;

const SealedValue = z.object({
  key: z.string(),
  wrapped: z.string(),
  data: z.string(),
  bytes: z.int(),
  by: z.string(),
});

/** What can be said of a value. */
export type SecretView = {
  readonly tenant: string;
  readonly name: string;
  readonly version: number;
  readonly bytes: number;
  /** The id of the key that wraps it. */
  readonly key: string;
  /** Who set it. */
  readonly by: string;
  readonly changedAtMs: number;
};

export type Vault = {
  /** `by` is the principal's name. */
  set(tenant: string, name: string, value: Uint8Array | string, by: string): Promise<SecretView>;
  /** Sets a value under a name that has none; false: it has one. */
  add(tenant: string, name: string, value: Uint8Array | string, by: string): Promise<boolean>;
  read(tenant: string, name: string): Promise<Buffer | undefined>;
  remove(tenant: string, name: string): Promise<boolean>;
  list(query: {
    readonly tenant?: string | undefined;
    readonly prefix?: string | undefined;
    readonly limit: number;
    readonly cursor?: string | undefined;
  }): Promise<{ readonly secrets: readonly SecretView[]; readonly cursor: string | undefined }>;
  /** Wraps every value with the first key. Where this node keeps the keys itself, `withNewKey` makes one first. */
  rotate(how: { readonly withNewKey: boolean }): Promise<Rotated>;
};

export type Rotated = { readonly key: string; readonly rewrapped: number; readonly kept: number };

export type VaultPorts = {
  readonly records: Records;
  readonly source: KeySource;
  readonly clock: Pick<Clock, "monotonicMs">;
};

type Space = "secret" | "system";

export const sealedKind = (space: Space): string => `vault.${space}`;

/** Keys are read again after this, so that a new one counts without a restart. */
const freshMs = 10_000;

/** `space` keeps what the program itself keeps apart from what people set. */
export function openVault({ records, source, clock }: VaultPorts, space: Space = "secret"): Vault {
  const limits = { countMax: secretsMax, bytesMax: 2 * secretsMax * secretBytesMax };
  const values = recordsOf(records, { kind: sealedKind(space), schema: SealedValue, limits });
  const keys = new Keys(source, clock);
  const belongsTo = (tenant: string, name: string): string => JSON.stringify([space, tenant, name]);
  const sealedFor = async (tenant: string, name: string, value: Uint8Array | string, by: string) => {
    const bytes = Buffer.from(value);
    if (bytes.length === 0 || bytes.length > secretBytesMax)
      throw new Fault("invalid", "set a secret", { name, why: `a value has 1 to ${secretBytesMax} bytes` });
    const sealed = seal(bytes, (await keys.fresh())[0], belongsTo(tenant, name));
    const next = { ...sealed, bytes: bytes.length, by };
    bytes.fill(0);
    return next;
  };
  return {
    async set(tenant, name, value, by) {
      const next = await sealedFor(tenant, name, value, by);
      const { created, record } = await values.create(tenant, name, next);
      if (created) return viewOf(record);
      return viewOf((await values.update(tenant, name, () => next)) ?? record);
    },
    add: async (tenant, name, value, by) =>
      (await values.create(tenant, name, await sealedFor(tenant, name, value, by))).created,
    async read(tenant, name) {
      const found = await values.read(tenant, name);
      return found && unseal(found.value, await keys.byId(found.value.key), belongsTo(tenant, name));
    },
    remove: (tenant, name) => values.remove(tenant, name),
    async list(query) {
      const { records: found, cursor } = await values.list(query);
      return { secrets: found.map(viewOf), cursor };
    },
    async rotate({ withNewKey }) {
      const first = withNewKey && source.add ? (await source.add())[0] : (await keys.reread())[0];
      keys.forget();
      let [rewrapped, kept] = [0, 0];
      let cursor: string | undefined;
      do {
        const page = await values.list({ limit: 200, cursor });
        for (const record of page.records) {
          const { tenant, name, value } = record;
          if (value.key === first.id) {
            kept += 1;
            continue;
          }
          const wrapped = rewrap(value, await keys.byId(value.key), first, belongsTo(tenant, name));
          // A value that was set meanwhile is wrapped by the first key already.
          if (await values.replace(record, { ...value, ...wrapped })) rewrapped += 1;
        }
        ({ cursor } = page);
      } while (cursor !== undefined);
      return { key: first.id, rewrapped, kept };
    },
  };
}

const viewOf = ({ tenant, name, version, changedAtMs, value }: Typed<z.output<typeof SealedValue>>): SecretView => ({
  tenant,
  name,
  version,
  bytes: value.bytes,
  key: value.key,
  by: value.by,
  changedAtMs,
});

/** The keys as they were last read. */
class Keys {
  readonly #source: KeySource;
  readonly #clock: Pick<Clock, "monotonicMs">;
  #known: { readonly keys: KeyList; readonly atMs: number } | undefined;

  constructor(source: KeySource, clock: Pick<Clock, "monotonicMs">) {
    this.#source = source;
    this.#clock = clock;
  }

  async fresh(): Promise<KeyList> {
    const known = this.#known;
    return known && this.#clock.monotonicMs() - known.atMs < freshMs ? known.keys : await this.reread();
  }

  async byId(id: string): Promise<WrappingKey> {
    const found =
      (await this.fresh()).find((key) => key.id === id) ?? (await this.reread()).find((key) => key.id === id);
    if (found) return found;
    const why = "this node has no such key: all nodes need the same list, with old keys until the vault was rotated";
    throw new Fault("unavailable", "open a sealed value", { key: id, why });
  }

  async reread(): Promise<KeyList> {
    const keys = await this.#source.read();
    this.#known = { keys, atMs: this.#clock.monotonicMs() };
    return keys;
  }

  forget(): void {
    this.#known = undefined;
  }
}

/**
 * Tenants whose work has a node of its own, as all nodes know it: one record for each, with the shards that were found
 * to be mostly the tenant's (ADR 0246). A shard's locks, keys and claims move with it.
 */
import { z } from "zod";
import type { ShardId } from "#base/ids.ts";
import type { NodeId } from "#journal/journal.ts";
import { recordsOf, type TypedRecords } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";

const IsolatedTenant = z.object({
  node: z.string().min(1).max(256),
  /** "hand": an operator said so. "rule": an owner did, and takes it back. */
  by: z.enum(["hand", "rule"]),
  shards: z.array(z.int().min(0)).max(10_000),
});

export type IsolatedTenant = z.output<typeof IsolatedTenant>;

/** The records belong to the cluster, so to no tenant. */
const owner = "millrace";
const countMax = 1_000;

export class IsolatedTenants {
  readonly #records: TypedRecords<IsolatedTenant>;
  readonly #changed: () => void;
  readonly #ending = new AbortController();
  #all: ReadonlyMap<string, IsolatedTenant> = new Map();

  /** `changed`: some shards belong elsewhere now. */
  constructor(records: Records, changed: () => void) {
    const limits = { countMax, bytesMax: 16 << 20 };
    this.#records = recordsOf(records, { kind: "cluster.isolated-tenant", schema: IsolatedTenant, limits });
    this.#changed = changed;
  }

  get all(): ReadonlyMap<string, IsolatedTenant> {
    return this.#all;
  }

  /** By shard, the node that is kept for its tenant, and the tenant. */
  get homes(): ReadonlyMap<ShardId, { readonly node: NodeId; readonly tenant: string }> {
    return new Map(
      [...this.#all].flatMap(([tenant, { node, shards }]) => shards.map((shard) => [shard, { node, tenant }] as const)),
    );
  }

  /** Follows the records until it is disposed of. */
  async follow(report: (error: unknown) => void): Promise<void> {
    const { signal } = this.#ending;
    try {
      for await (const { isReset, changed, removed } of this.#records.watch({ tenant: owner }, signal)) {
        const all = new Map(isReset ? [] : this.#all);
        for (const { name, value } of changed) all.set(name, value);
        for (const name of removed) all.delete(name);
        this.#set(all);
      }
    } catch (error) {
      if (!signal.aborted) report(error);
    }
  }

  /** Its shards stay those that were found, where it was isolated before. */
  async isolate(tenant: string, wanted: IsolatedTenant): Promise<IsolatedTenant> {
    const { created, record } = await this.#records.create(owner, tenant, wanted);
    const kept = (was: IsolatedTenant): IsolatedTenant => ({ ...wanted, shards: merged(was.shards, wanted.shards) });
    const value = created ? record.value : ((await this.#records.update(owner, tenant, kept))?.value ?? wanted);
    this.#set(new Map(this.#all).set(tenant, value));
    return value;
  }

  /** One more shard is mostly the tenant's; nothing if the tenant is not isolated any more, or has `shardsMax`. */
  async join(tenant: string, shard: ShardId, shardsMax: number): Promise<void> {
    await this.#change(tenant, (shards) => (shards.length < shardsMax ? merged(shards, [shard]) : shards));
  }

  async leave(tenant: string, shard: ShardId): Promise<void> {
    await this.#change(tenant, (shards) => shards.filter((one) => one !== shard));
  }

  /** False: it was not isolated. */
  async release(tenant: string): Promise<boolean> {
    const isRemoved = await this.#records.remove(owner, tenant);
    const all = new Map(this.#all);
    all.delete(tenant);
    this.#set(all);
    return isRemoved;
  }

  [Symbol.dispose](): void {
    this.#ending.abort();
  }

  async #change(tenant: string, change: (shards: readonly ShardId[]) => readonly ShardId[]): Promise<void> {
    const changed = await this.#records.update(owner, tenant, (was) => ({ ...was, shards: [...change(was.shards)] }));
    if (changed) this.#set(new Map(this.#all).set(tenant, changed.value));
  }

  #set(all: ReadonlyMap<string, IsolatedTenant>): void {
    this.#all = all;
    this.#changed();
  }
}

const merged = (a: readonly ShardId[], b: readonly ShardId[]): ShardId[] =>
  [...new Set([...a, ...b])].toSorted((one, other) => one - other);

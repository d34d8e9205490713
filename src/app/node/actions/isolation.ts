/**
 * Shards that have a node of their own, as all nodes know it: one record for each. The keepers of all nodes read it and
 * move what does not belong (ADR 0117); a shard's locks, keys and claims move with it.
 */
import { z } from "zod";
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { NodeId } from "#journal/journal.ts";
import { recordsOf, type TypedRecords } from "#records/typed.ts";
import type { Records } from "#records/watch.ts";

const IsolatedShard = z.strictObject({
  node: z.string().min(1).max(256),
  /** "hand": an operator said so. "rule": its owner did, and takes it back. */
  by: z.enum(["hand", "rule"]),
});

export type IsolatedShard = z.output<typeof IsolatedShard>;

/** The records belong to the cluster, so to no tenant. */
const owner = "millrace";
/** A few nodes can be kept for one shard each. */
const countMax = 1_000;

export class Isolation {
  readonly #records: TypedRecords<IsolatedShard>;
  readonly #changed: () => void;
  readonly #ending = new AbortController();
  #all: ReadonlyMap<ShardId, IsolatedShard> = new Map();
  #homes: ReadonlyMap<ShardId, NodeId> = new Map();

  /** `changed`: some shards belong elsewhere now. */
  constructor(records: Records, changed: () => void) {
    const limits = { countMax, bytesMax: 1 << 20 };
    this.#records = recordsOf(records, { kind: "cluster.isolated-shard", schema: IsolatedShard, limits });
    this.#changed = changed;
  }

  get all(): ReadonlyMap<ShardId, IsolatedShard> {
    return this.#all;
  }

  /** By shard, the node that is kept for it. */
  get homes(): ReadonlyMap<ShardId, NodeId> {
    return this.#homes;
  }

  /** Follows the records until it is disposed of. */
  async follow(report: (error: unknown) => void): Promise<void> {
    const { signal } = this.#ending;
    try {
      for await (const { isReset, changed, removed } of this.#records.watch({ tenant: owner }, signal)) {
        const all = new Map(isReset ? [] : this.#all);
        for (const { name, value } of changed) all.set(Number(name), value);
        for (const name of removed) all.delete(Number(name));
        this.#set(all);
      }
    } catch (error) {
      if (!signal.aborted) report(error);
    }
  }

  async isolate(shard: ShardId, wanted: IsolatedShard): Promise<void> {
    const name = String(shard);
    const { created } = await this.#records.create(owner, name, wanted);
    if (!created && !(await this.#records.update(owner, name, () => wanted)))
      throw new Fault("unavailable", "isolate a shard", { shard, why: "somebody released it at the same moment" });
    this.#set(new Map(this.#all).set(shard, wanted));
  }

  /** False: it was not isolated. */
  async release(shard: ShardId): Promise<boolean> {
    const isRemoved = await this.#records.remove(owner, String(shard));
    const all = new Map(this.#all);
    all.delete(shard);
    this.#set(all);
    return isRemoved;
  }

  [Symbol.dispose](): void {
    this.#ending.abort();
  }

  #set(all: ReadonlyMap<ShardId, IsolatedShard>): void {
    this.#all = all;
    this.#homes = new Map([...all].map(([shard, { node }]) => [shard, node]));
    this.#changed();
  }
}

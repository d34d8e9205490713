/** The partition map as this process last read it, corrected by what owners answer. */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Ownership } from "#journal/journal.ts";
import type { Address } from "#shard/transport/transport.ts";

export type OwnerSource = () => Promise<readonly Ownership[]>;

export class OwnerMap {
  readonly #source: OwnerSource;
  readonly #clock: Clock;
  readonly #refreshMsMin: number;
  readonly #addresses = new Map<ShardId, Address>();
  #readAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  /** How many shards there are; 0 before the map has been read. */
  #shards = 0;

  constructor(source: OwnerSource, clock: Clock, refreshMsMin: number) {
    this.#source = source;
    this.#clock = clock;
    this.#refreshMsMin = refreshMsMin;
  }

  /** The address of the believed owner. */
  known(shard: ShardId): Address | undefined {
    return this.#addresses.get(shard);
  }

  /** The same from a map that is read now, for a shard without a believed owner. */
  async find(shard: ShardId): Promise<Address | undefined> {
    await this.#read();
    // The number of shards is fixed when the cluster is created: a shard that is not in the map never will be (usually
    // a mistyped id).
    if (this.#shards > 0 && shard >= this.#shards)
      throw new Fault("not-found", "find owner", { shard, shards: this.#shards, why: "there is no such shard" });
    return this.#addresses.get(shard);
  }

  /** Whether another node, or none, owns the shard now, by a map that is at most `ageMsMax` old. */
  async hasMoved(shard: ShardId, from: Address, ageMsMax: number): Promise<boolean> {
    if (this.#clock.monotonicMs() - this.#readAtMs >= ageMsMax) await this.#read();
    return this.#addresses.get(shard) !== from;
  }

  /** The node that was asked is not the owner, or not reachable. A newer belief stays. */
  forget(shard: ShardId, wrong: Address): void {
    if (this.#addresses.get(shard) === wrong) this.#addresses.delete(shard);
  }

  /** The node that was asked points elsewhere. True if that is new information. */
  correct(shard: ShardId, wrong: Address, hint: Address | undefined): boolean {
    this.forget(shard, wrong);
    if (hint === undefined || hint === wrong || this.#addresses.has(shard)) return false;
    this.#addresses.set(shard, hint);
    return true;
  }

  /** Many callers share one read. A map that cannot be read is no reason to fail while there is time. */
  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readOnce(): Promise<void> {
    const restMs = this.#readAtMs + this.#refreshMsMin - this.#clock.monotonicMs();
    if (restMs > 0) await this.#clock.sleep(restMs);
    try {
      const ownerships = await this.#source();
      this.#shards = ownerships.reduce((most, { shard }) => Math.max(most, shard + 1), this.#shards);
      for (const { shard, address, remainingMs, unseen } of ownerships) {
        if (unseen) continue;
        if (address !== undefined && remainingMs > 0) this.#addresses.set(shard, address);
        else this.#addresses.delete(shard);
      }
    } catch (error) {
      if (!isFault(error)) throw new Fault("internal", "read the partition map", {}, error);
      if (error.code === "invalid" || error.code === "internal" || error.code === "corrupt") throw error;
    } finally {
      this.#readAtMs = this.#clock.monotonicMs();
    }
  }
}

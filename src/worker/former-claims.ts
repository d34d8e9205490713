/**
 * Claims that shards believe this worker to hold and that it does not know: an earlier process had them, or the answer
 * that granted them was lost. Each shard is asked about them once before it is asked for work.
 */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Random } from "#base/random.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { Backoff } from "#shard/router/backoff.ts";
import type { Renewals } from "./renewal.ts";

export type FormerPorts = {
  readonly renewals: Pick<Renewals, "sync">;
  readonly clock: Clock;
  readonly random: Random;
  readonly shards: number;
  /** The worker was stopped abruptly. */
  readonly crash: AbortSignal;
};

export class FormerClaims {
  readonly #ports: FormerPorts;
  readonly #cleared = new Set<ShardId>();
  readonly #asking = new Map<ShardId, Promise<boolean>>();

  constructor(ports: FormerPorts) {
    this.#ports = ports;
  }

  /**
   * Asks the shard at most once; false if it could not be asked. A second question on its way would take for a former
   * claim what the shard grants after the answer to the first one.
   */
  async given(shard: ShardId): Promise<boolean> {
    if (this.#cleared.has(shard)) return true;
    let asking = this.#asking.get(shard);
    if (!asking) {
      asking = this.giveBack(shard).finally(() => this.#asking.delete(shard));
      this.#asking.set(shard, asking);
    }
    return await asking;
  }

  async giveBack(shard: ShardId, deadlineMs = 5_000): Promise<boolean> {
    const { renewals, crash } = this.#ports;
    try {
      await renewals.sync(shard, { deadlineMs });
      this.#cleared.add(shard);
      return true;
    } catch (error) {
      if (!isFault(error) && !isRejected(error) && !crash.aborted) throw error;
      return false;
    }
  }

  /** Shards that are not visited may hold such claims too. */
  async giveAllBack(signal: AbortSignal): Promise<void> {
    const { clock, random, shards } = this.#ports;
    const backoff = new Backoff({ backoffMs: 100, backoffMsMax: 5_000 }, random);
    for (let shard = 0; shard < shards && !signal.aborted;) {
      if (await this.given(shard)) {
        shard += 1;
        backoff.reset();
      } else await clock.sleep(backoff.next(), signal).catch(() => {});
    }
  }
}

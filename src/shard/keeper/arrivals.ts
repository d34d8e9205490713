/**
 * Callers that follow a shard to its new owner often arrive before the shard. They are held for a moment: if they were
 * sent away, they would back off longer and longer, and see a longer gap than there was.
 */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";

type Arrival = { readonly over: PromiseWithResolvers<void>; callers: number };

const callersMax = 1_000;

export class Arrivals {
  readonly #clock: Clock;
  readonly #waitMsMax: number;
  readonly #expected = new Map<ShardId, Arrival>();

  constructor(clock: Clock, waitMsMax: number) {
    this.#clock = clock;
    this.#waitMsMax = waitMsMax;
  }

  /** Until the shard is served here, or will not be, or the time is up. */
  async wait(shard: ShardId): Promise<void> {
    const arrival = this.#expected.get(shard) ?? { over: Promise.withResolvers<void>(), callers: 0 };
    if (arrival.callers >= callersMax) return;
    this.#expected.set(shard, arrival);
    arrival.callers += 1;
    const late = Promise.withResolvers<void>();
    const cancel = this.#clock.after(this.#waitMsMax, late.resolve);
    await Promise.race([arrival.over.promise, late.promise]);
    cancel();
    arrival.callers -= 1;
    if (arrival.callers === 0 && this.#expected.get(shard) === arrival) this.#expected.delete(shard);
  }

  over(shard: ShardId): void {
    this.#expected.get(shard)?.over.resolve();
    this.#expected.delete(shard);
  }
}

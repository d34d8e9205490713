/**
 * Workers with free slots that wait for work in any of this node's shards. With many shards no worker can wait at each
 * of them; here one request to a node covers all of its shards. A worker that hears of work still has to claim it.
 *
 * RD1 Work that is not claimed is announced to more and more waiting workers: one that was told may have no free slot
 * any more.
 */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import { takes } from "#kernel/ready/lanes.ts";
import type { State } from "#kernel/model/state.ts";
import type { UnclaimedWork } from "#shard/host/desk.ts";

/** A worker, what it offers, and how many more attempts it can run. */
export type FreeSlots = { readonly executor: string; readonly offers: readonly string[]; readonly free: number };

/** A shard with work for the worker, and the weights of the tenants that have some. */
export type ReadyShard = readonly [shard: ShardId, weight: number];

export type ReadyPorts = {
  readonly clock: Clock;
  readonly shards: () => Iterable<{ readonly shard: ShardId; readonly phase: string; readonly state: State }>;
};

const waitersMax = 10_000;
const waitMsMax = 60_000;
/** How long the workers that were told have to claim, before others are told as well. */
const againMs = 30;

type Waiter = {
  readonly room: FreeSlots;
  readonly offers: ReadonlySet<string>;
  tell(ready: readonly ReadyShard[]): void;
};

export class ReadyDesk {
  readonly #ports: ReadyPorts;
  readonly #waiters = new Set<Waiter>();
  #stopTimer: (() => void) | undefined;

  constructor(ports: ReadyPorts) {
    this.#ports = ports;
  }

  /**
   * The shards with work for the worker: at once if there are some, else as soon as there are, or none when the time is
   * up.
   */
  wait(room: FreeSlots, waitMs: number, signal: AbortSignal): Promise<readonly ReadyShard[]> {
    const offers = room.offers.toSorted();
    const now = this.#readyFor(offers);
    if (now.length > 0 || waitMs <= 0 || signal.aborted || this.#waiters.size >= waitersMax)
      return Promise.resolve(now);
    return new Promise((resolve) => {
      const tell = (ready: readonly ReadyShard[]): void => {
        cancel();
        signal.removeEventListener("abort", leave);
        this.#waiters.delete(waiter);
        resolve(ready);
      };
      const leave = (): void => tell([]);
      const waiter: Waiter = { room: { ...room, offers }, offers: new Set(offers), tell };
      const cancel = this.#ports.clock.after(Math.min(waitMs, waitMsMax), leave);
      signal.addEventListener("abort", leave, { once: true });
      this.#waiters.add(waiter);
    });
  }

  /**
   * There is work that no executor waiting at the shard itself took: the worker near it is told first, then the
   * emptiest.
   */
  unclaimed(shard: ShardId, { ready, affinity, ...wanted }: UnclaimedWork): void {
    if (this.#waiters.size === 0) return;
    const able = [...this.#waiters].filter(({ offers }) => takes(offers, wanted));
    let left = ready;
    const isNear = ({ room }: Waiter): number => (room.executor === affinity ? 1 : 0);
    for (const waiter of able.toSorted((a, b) => isNear(b) - isNear(a) || b.room.free - a.room.free)) {
      if (left <= 0) break;
      left -= waiter.room.free;
      waiter.tell([[shard, 1]]);
    }
    if (this.#waiters.size > 0) this.#stopTimer ??= this.#ports.clock.after(againMs, () => this.#again());
  }

  stop(): void {
    this.#stopTimer?.();
    for (const waiter of this.#waiters) waiter.tell([]);
  }

  /** RD1. */
  #again(): void {
    this.#stopTimer = undefined;
    for (const waiter of this.#waiters) {
      const ready = this.#readyFor(waiter.room.offers);
      if (ready.length > 0) waiter.tell(ready);
    }
  }

  #readyFor(offers: readonly string[]): readonly ReadyShard[] {
    const found: ReadyShard[] = [];
    for (const { shard, phase, state } of this.#ports.shards()) {
      if (phase !== "serving" || state.ready.size === 0) continue;
      // Tenants that are out of quota are in no heap: none of their work can be claimed now.
      for (const { heap } of state.ready.signature(offers).matched)
        if (heap.top()) {
          found.push([shard, state.ready.readyWeight]);
          break;
        }
    }
    return found;
  }
}

/**
 * Workers with room that wait for word of work, in whichever of this node's shards. With many shards nobody can wait
 * at each of them; here one question to a node is one for all of its shards. Whoever is told still has to claim.
 *
 * RD1 Work that nobody claims is told to ever more of those who wait: one that was told may have no room any more.
 */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import type { State } from "#kernel/model/state.ts";
import type { UnclaimedWork } from "#shard/host/desk.ts";

/** A worker, what it offers, and how many more attempts it has room for. */
export type Room = { readonly executor: string; readonly offers: readonly string[]; readonly free: number };

/** A shard with work for the one who asked, and the weights of the tenants that have some. */
export type ReadyShard = readonly [shard: ShardId, weight: number];

export type ReadyPorts = {
  readonly clock: Clock;
  readonly shards: () => Iterable<{ readonly shard: ShardId; readonly phase: string; readonly state: State }>;
};

const waitersMax = 10_000;
const waitMsMax = 60_000;
/** How long those who were told have to claim, before others are told as well. */
const againMs = 30;

type Waiter = { readonly room: Room; readonly offers: ReadonlySet<string>; tell(ready: readonly ReadyShard[]): void };

export class ReadyDesk {
  readonly #ports: ReadyPorts;
  readonly #waiters = new Set<Waiter>();
  #stopTimer: (() => void) | undefined;

  constructor(ports: ReadyPorts) {
    this.#ports = ports;
  }

  /** The shards with work for it: at once where there are some, else when there are, or none when the time is up. */
  wait(room: Room, waitMs: number, signal: AbortSignal): Promise<readonly ReadyShard[]> {
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
   * There is work that none of those who wait at the shard itself took: the worker that is near it is told first, then
   * the emptiest.
   */
  unclaimed(shard: ShardId, { requires, ready, affinity }: UnclaimedWork): void {
    if (this.#waiters.size === 0) return;
    const able = [...this.#waiters].filter(({ offers }) => requires.every((label) => offers.has(label)));
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
      // Tenants that are out of quota stand in no heap: of their work there is nothing to claim now.
      for (const { heap } of state.ready.signature(offers).matched)
        if (heap.top()) {
          found.push([shard, state.ready.readyWeight]);
          break;
        }
    }
    return found;
  }
}

/**
 * Room in a spool for bytes that have not come yet. Who says how many there will be waits for its turn instead of being
 * refused, and never holds a part of them while it waits, so that no two uploads wait for each other.
 */
import type { Clock } from "#base/clock.ts";
import { beyondLimit, type UploadLedger, type UploadOwner } from "./upload-limits.ts";

/** Counts against its owner until it is filled or disposed. */
export type Room = Disposable & {
  /** So many bytes have come, and are counted by themselves from now on. */
  fill(bytes: number): void;
};

type Waiter = { readonly owner: UploadOwner; readonly sizeBytes: number; readonly enter: () => void };

const waitersMax = 10_000;

export class Rooms {
  readonly #ledger: UploadLedger;
  /** First come, first served, for each caller. */
  readonly #waiters = new Set<Waiter>();

  constructor(ledger: UploadLedger) {
    this.#ledger = ledger;
  }

  /** Throws Fault "exhausted" if there is no room in all that time, or never will be. */
  async reserve(owner: UploadOwner, sizeBytes: number, clock: Clock, waitMs: number): Promise<Room> {
    const never = this.#ledger.excessOfWhole(owner, sizeBytes);
    if (never) throw beyondLimit(never);
    if ([...this.#waiters].some((one) => isSame(one.owner, owner)) || !this.#enter(owner, sizeBytes))
      await this.#wait(owner, sizeBytes, clock, waitMs);
    let left = sizeBytes;
    const give = (bytes: number, count: number): void => {
      left -= bytes;
      this.#ledger.add(owner, -bytes, -count);
    };
    let isOver = false;
    return {
      fill: (bytes) => give(Math.min(bytes, left), 0),
      [Symbol.dispose]: () => {
        if (isOver) return;
        isOver = true;
        give(left, 1);
        this.wake();
      },
    };
  }

  #enter(owner: UploadOwner, sizeBytes: number): boolean {
    if (this.#ledger.excess(owner, "bytes", sizeBytes) ?? this.#ledger.excess(owner, "count", 1)) return false;
    this.#ledger.add(owner, sizeBytes, 1);
    return true;
  }

  async #wait(owner: UploadOwner, sizeBytes: number, clock: Clock, waitMs: number): Promise<void> {
    const full = () => beyondLimit({ scope: "caller", what: "bytes", max: sizeBytes }, waitMs);
    if (this.#waiters.size >= waitersMax) throw full();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { owner, sizeBytes, enter: resolve };
    this.#waiters.add(waiter);
    const stop = clock.after(waitMs, () => reject(full()));
    try {
      await promise;
    } finally {
      stop();
      this.#waiters.delete(waiter);
    }
  }

  /** Something was released: who waits longest goes first, and others of its caller behind it. */
  wake(): void {
    const behind = new Set<string>();
    for (const waiter of this.#waiters) {
      const caller = callerOf(waiter.owner);
      if (behind.has(caller)) continue;
      if (!this.#enter(waiter.owner, waiter.sizeBytes)) {
        behind.add(caller);
        continue;
      }
      this.#waiters.delete(waiter);
      waiter.enter();
    }
  }
}

const callerOf = ({ tenant, caller = "" }: UploadOwner): string => `${tenant}/${caller}`;
const isSame = (one: UploadOwner, other: UploadOwner): boolean => callerOf(one) === callerOf(other);

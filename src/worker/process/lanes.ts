/** Tracks free lanes. A lane is lent to one attempt at a time; its number determines its user. */
import { Fault } from "#base/fault.ts";

export type LaneLoan = Disposable & {
  readonly index: number;
  /** The user and group of its processes, if lanes have separate users. */
  readonly uid: number | undefined;
};

const waitersMax = 10_000;

export class Lanes {
  readonly count: number;
  readonly #free: number[];
  readonly #uidBase: number | undefined;
  #waiters: ((index: number) => void)[] = [];

  /** Numbered from `first` on. */
  constructor(count: number, uidBase: number | undefined, first = 0) {
    this.count = count;
    this.#free = Array.from({ length: count }, (_, index) => first + count - 1 - index);
    this.#uidBase = uidBase;
  }

  get freeCount(): number {
    return this.#free.length;
  }

  /** The next free lane, in rotation. */
  async lend(signal?: AbortSignal): Promise<LaneLoan> {
    signal?.throwIfAborted();
    const index = this.#free.pop();
    if (index !== undefined) return this.#loan(index);
    if (this.#waiters.length >= waitersMax) throw new Fault("exhausted", "lend lane", { waiting: waitersMax });
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    this.#waiters.push(resolve);
    const leave = (): void => {
      const at = this.#waiters.indexOf(resolve);
      if (at >= 0) this.#waiters.splice(at, 1);
      if (at >= 0) reject(signal?.reason as Error);
    };
    signal?.addEventListener("abort", leave, { once: true });
    try {
      return this.#loan(await promise);
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  }

  /** Takes a lane in which a process of an earlier node process still runs. */
  take(index: number): LaneLoan | undefined {
    const at = this.#free.indexOf(index);
    if (at < 0) return undefined;
    this.#free.splice(at, 1);
    return this.#loan(index);
  }

  #loan(index: number): LaneLoan {
    let isLent = true;
    const giveBack = (): void => {
      if (!isLent) return;
      isLent = false;
      const next = this.#waiters.shift();
      if (next) next(index);
      else this.#free.push(index);
    };
    const uid = this.#uidBase === undefined ? undefined : this.#uidBase + index;
    return { index, uid, [Symbol.dispose]: giveBack };
  }
}

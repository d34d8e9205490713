/**
 * A link with one limit, and those that wait to send through it: the more urgent first, then in the order in which they
 * came. Pure: the host wakes it up.
 */
import { Bucket } from "./bucket.ts";
import type { Priority } from "./uploads.ts";

type Waiting<W> = { readonly waiter: W; readonly bytes: number };

const burstMs = 100;

export class Link<W> {
  readonly #bucket: Bucket;
  readonly #waiting: Waiting<W>[][] = [[], [], []];

  constructor(bytesPerSecond: number, nowMs: number) {
    this.#bucket = new Bucket(bytesPerSecond, burstMs, nowMs);
  }

  /** May be changed while others wait. */
  set(bytesPerSecond: number, nowMs: number): void {
    this.#bucket.set(bytesPerSecond, nowMs);
  }

  wait(waiter: W, bytes: number, priority: Priority): void {
    this.#waiting[priority]?.push({ waiter, bytes });
  }

  leave(waiter: W): void {
    for (const list of this.#waiting) {
      const at = list.findIndex((each) => each.waiter === waiter);
      if (at >= 0) list.splice(at, 1);
    }
  }

  /** Those that may go now, and how long it is until the next one may; undefined: none waits. */
  next(nowMs: number): { readonly going: readonly W[]; readonly waitMs: number | undefined } {
    const going: W[] = [];
    for (const list of this.#waiting)
      while (list.length > 0) {
        const waitMs = this.#bucket.waitMs(nowMs);
        if (waitMs > 0) return { going, waitMs };
        const first = list.shift();
        if (!first) break;
        this.#bucket.take(first.bytes);
        going.push(first.waiter);
      }
    return { going, waitMs: undefined };
  }
}

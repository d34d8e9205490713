/** Events by virtual time, in steps of a tenth of a millisecond; equal times in the order in which they were added. */
export type Timed = { next?: Timed | undefined; step?: number | undefined };

const stepsPerMs = 10;
const slots = 2 ** 16;

export class Wheel<E extends Timed> {
  readonly #heads: (E | undefined)[] = Array.from({ length: slots });
  readonly #tails: (E | undefined)[] = Array.from({ length: slots });
  #step = 0;
  #pending = 0;

  get nowMs(): number {
    return this.#step / stepsPerMs;
  }

  at(atMs: number, event: E): void {
    event.step = Math.max(this.#step + 1, Math.ceil(atMs * stepsPerMs));
    this.#add(event, event.step % slots);
    this.#pending += 1;
  }

  /** Until nothing is left, `isOver` says so, or the time is up. */
  run(untilMs: number, fire: (event: E) => void, isOver: () => boolean): void {
    const last = untilMs * stepsPerMs;
    for (; this.#pending > 0 && this.#step <= last; this.#step += 1) {
      const slot = this.#step % slots;
      const head = this.#heads[slot];
      if (!head) continue;
      this.#heads[slot] = undefined;
      this.#tails[slot] = undefined;
      for (let event: E | undefined = head; event;) {
        const next: E | undefined = event.next as E | undefined;
        // A later round of the wheel.
        if ((event.step ?? 0) > this.#step) this.#add(event, slot);
        else {
          this.#pending -= 1;
          fire(event);
        }
        event = next;
      }
      if (isOver()) return;
    }
  }

  #add(event: E, slot: number): void {
    event.next = undefined;
    const tail = this.#tails[slot];
    if (tail) tail.next = event;
    else this.#heads[slot] = event;
    this.#tails[slot] = event;
  }
}

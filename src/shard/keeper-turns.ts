import type { Clock } from "#base/clock.ts";

/**
 * Lets the event loop have its turn between slices of long work. All such work of a node stands in one line, one
 * slice a turn: eight logs read side by side would otherwise keep the renewals of leases waiting for eight slices.
 */
export class Turns {
  readonly #clock: Clock;
  #last: Promise<void> = Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  next(): Promise<void> {
    this.#last = this.#last.then(() => this.#clock.sleep(0));
    return this.#last;
  }
}

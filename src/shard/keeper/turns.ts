import type { Clock } from "#base/clock.ts";

/**
 * Gives the event loop a turn between slices of long work. All such work of a node shares one queue, one slice per
 * turn: eight logs read side by side would otherwise delay lease renewals by eight slices.
 */
export class Turns {
  readonly #clock: Clock;
  #held: Promise<void> | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  next(): Promise<void> {
    this.#last = this.#last.then(() => this.#turn());
    return this.#last;
  }

  /**
   * Pauses the queue until `begin`'s work is over: it needs many turns of the event loop, soon. Resolves when that work
   * has begun, which waits until no other such work is in progress.
   */
  async hold(begin: () => Promise<void>): Promise<void> {
    while (this.#held !== undefined) await this.#held;
    const held = begin().finally(() => (this.#held = undefined));
    this.#held = held;
  }

  slice(): Slice {
    return new Slice(this, this.#clock);
  }

  async #turn(): Promise<void> {
    await this.#clock.sleep(0);
    while (this.#held !== undefined) await this.#held;
  }
}

/**
 * By size or by time, whichever is first: in a program that has just started, the same bytes take ten times as long.
 */
const sliceMax = { bytes: 512 * 1024, ms: 8 };

/** One log's share of a turn. Only its computing time counts, not the time it waits. */
export class Slice {
  readonly #turns: Turns;
  readonly #clock: Clock;
  #bytes = 0;
  #ms = 0;

  constructor(turns: Turns, clock: Clock) {
    this.#turns = turns;
    this.#clock = clock;
  }

  get isOver(): boolean {
    return this.#bytes >= sliceMax.bytes || this.#ms >= sliceMax.ms;
  }

  work(bytes: number, run: () => void): void {
    const beganMono = this.#clock.monotonicMs();
    run();
    this.#ms += this.#clock.monotonicMs() - beganMono;
    this.#bytes += bytes;
  }

  /** Resolves when the next slice may begin: in queue order, or at once for a log that others wait for. */
  async next(place: QueuePosition): Promise<void> {
    this.#bytes = 0;
    this.#ms = 0;
    await (place === "in line" ? this.#turns.next() : this.#clock.sleep(0));
  }
}

export type QueuePosition = "in line" | "first";

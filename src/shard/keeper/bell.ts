import type { Clock } from "#base/clock.ts";

/** A pause that can be cut short. */
export class Bell {
  readonly #clock: Clock;
  #wake: (() => void) | undefined;
  #rung = false;
  #stopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the current pause, or the next one before it begins. */
  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** From now on no pause lasts. */
  stop(): void {
    this.#stopped = true;
    this.#wake?.();
  }

  async wait(ms: number): Promise<void> {
    if (!this.#rung && !this.#stopped)
      await new Promise<void>((resolve) => {
        const cancel = this.#clock.after(ms, resolve);
        this.#wake = () => {
          cancel();
          resolve();
        };
      });
    this.#wake = undefined;
    this.#rung = false;
  }
}

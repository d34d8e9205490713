import type { Random } from "#base/random.ts";

export type BackoffOptions = { readonly backoffMs: number; readonly backoffMsMax: number };

/**
 * Delays that double up to a limit, each between half and all of it, so that callers that failed together spread out.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: Random;
  #failures = 0;

  constructor(options: BackoffOptions, random: Random) {
    this.#options = options;
    this.#random = random;
  }

  next(): number {
    const { backoffMs, backoffMsMax } = this.#options;
    const fullMs = Math.min(backoffMsMax, backoffMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    return fullMs / 2 + (fullMs / 2) * this.#random.fraction();
  }

  /** Call after a success. */
  reset(): void {
    this.#failures = 0;
  }
}

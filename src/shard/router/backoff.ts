import type { Random } from "#base/random.ts";

export type BackoffOptions = { readonly backoffMs: number; readonly backoffMsMax: number };

/** Waits that double up to a limit, each between half and all of it: callers that failed together part ways. */
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

  /** Something went well. */
  reset(): void {
    this.#failures = 0;
  }
}

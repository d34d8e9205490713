/** Cancellation of a job: what runs is asked again whether it should, and stopped when not (CI-11). */

type Running = { readonly stillHolds: () => boolean; readonly controller: AbortController };

export class Stopping {
  readonly #running = new Set<Running>();
  #isCancelled = false;
  #isKilled = false;

  /** Around the work of one step. */
  enter(stillHolds: () => boolean): { readonly signal: AbortSignal } & Disposable {
    const running: Running = { stillHolds, controller: new AbortController() };
    this.#running.add(running);
    if (this.#isKilled) running.controller.abort();
    return { signal: running.controller.signal, [Symbol.dispose]: () => void this.#running.delete(running) };
  }

  cancel(): void {
    this.#isCancelled = true;
    for (const running of this.#running) if (!running.stillHolds()) running.controller.abort();
  }

  /** The time for cancelling is over as well: nothing may go on. */
  kill(): void {
    this.#isCancelled = true;
    this.#isKilled = true;
    for (const running of this.#running) running.controller.abort();
  }

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  get isKilled(): boolean {
    return this.#isKilled;
  }
}

/** A signal for each of many calls that is aborted with the call or when the node leaves, whichever comes first. */

export type HeldCall = Disposable & { readonly signal: AbortSignal };

/** One listener for all of them: `AbortSignal.any` costs more than all else that a call does to wait. */
export class UntilLeaving {
  readonly #leaving: AbortSignal | undefined;
  readonly #held = new Set<AbortController>();

  constructor(leaving: AbortSignal | undefined) {
    this.#leaving = leaving;
    leaving?.addEventListener("abort", () => this.#letGo(), { once: true });
  }

  /** Disposing of it leaves nothing behind. */
  hold(call: AbortSignal): HeldCall {
    if (!this.#leaving) return { signal: call, [Symbol.dispose]: () => {} };
    const held = new AbortController();
    const stop = (): void => held.abort(call.reason);
    call.addEventListener("abort", stop, { once: true });
    this.#held.add(held);
    if (call.aborted) stop();
    if (this.#leaving.aborted) held.abort(this.#leaving.reason);
    return {
      signal: held.signal,
      [Symbol.dispose]: () => {
        call.removeEventListener("abort", stop);
        this.#held.delete(held);
      },
    };
  }

  #letGo(): void {
    for (const held of this.#held) held.abort(this.#leaving?.reason);
    this.#held.clear();
  }
}

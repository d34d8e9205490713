/** For each of many calls, a signal that is aborted with the call or when the node leaves, whichever comes first. */

export type HeldCall = Disposable & { readonly signal: AbortSignal };

/** One listener for all calls: `AbortSignal.any` costs more than everything else that a waiting call does. */
export class UntilLeaving {
  readonly #leaving: AbortSignal | undefined;
  readonly #held = new Set<Held>();

  constructor(leaving: AbortSignal | undefined) {
    this.#leaving = leaving;
    leaving?.addEventListener("abort", () => this.#letGo(), { once: true });
  }

  /** Disposing of it removes all references. */
  hold(call: AbortSignal): HeldCall {
    if (!this.#leaving) return { signal: call, [Symbol.dispose]: () => {} };
    const held = new Held(call, this.#held);
    if (this.#leaving.aborted) held.abort(this.#leaving.reason);
    return held;
  }

  #letGo(): void {
    for (const held of this.#held) held.abort(this.#leaving?.reason);
    this.#held.clear();
  }
}

class Held implements HeldCall {
  readonly #call: AbortSignal;
  readonly #all: Set<Held>;
  readonly #abort = new AbortController();
  readonly #stop = (): void => this.abort(this.#call.reason);

  constructor(call: AbortSignal, all: Set<Held>) {
    this.#call = call;
    this.#all = all;
    all.add(this);
    call.addEventListener("abort", this.#stop, { once: true });
    if (call.aborted) this.#stop();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  abort(why: unknown): void {
    this.#abort.abort(why);
  }

  [Symbol.dispose](): void {
    this.#call.removeEventListener("abort", this.#stop);
    this.#all.delete(this);
  }
}

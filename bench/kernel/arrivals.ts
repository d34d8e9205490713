/**
 * Requests reach a real node one by one, as its sockets are read, with a look at everything else in between. Load that
 * is made inside the node's own process would come as one block instead, all who were answered together at once, and
 * nothing would be written while it is decided on.
 */
export class Arrivals {
  readonly #waiting: (() => void)[] = [];
  #running = false;

  /** Resolves in a turn of the event loop of its own. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#running) return;
      this.#running = true;
      setImmediate(this.#next);
    });
  }

  readonly #next = (): void => {
    this.#waiting.shift()?.();
    if (this.#waiting.length > 0) setImmediate(this.#next);
    else this.#running = false;
  };
}

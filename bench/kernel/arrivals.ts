/**
 * Makes requests arrive one by one, as on a real node whose sockets are read, with turns of the event loop in between.
 * Load made inside the node's own process would otherwise arrive as one block: all clients that were answered together
 * would ask together, and nothing would be written while commands are decided.
 */
export class Arrivals {
  readonly #waiting: (() => void)[] = [];
  #running = false;

  /** Resolves in a separate turn of the event loop. */
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

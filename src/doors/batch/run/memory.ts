/**
 * A node's memory, given to tasks before they start: what they may take together is there. Who finds too little left
 * waits in line, so that a task that needs much is not passed by small ones for ever.
 */
import { Fault } from "#base/fault.ts";

type Waiting = { readonly bytes: number; readonly resolve: () => void };

const waitingMax = 10_000;

export class Memory {
  readonly totalBytes: number;
  #freeBytes: number;
  readonly #waiting: Waiting[] = [];

  constructor(totalBytes: number) {
    this.totalBytes = totalBytes;
    this.#freeBytes = totalBytes;
  }

  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** More than there is at all is taken for all there is. */
  async take(wantedBytes: number, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    const bytes = Math.min(wantedBytes, this.totalBytes);
    if (this.#waiting.length > 0 || bytes > this.#freeBytes) await this.#wait(bytes, signal);
    else this.#freeBytes -= bytes;
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#freeBytes += bytes;
        this.#next();
      },
    };
  }

  async #wait(bytes: number, signal: AbortSignal): Promise<void> {
    if (this.#waiting.length >= waitingMax)
      throw new Fault("exhausted", "wait for memory", { waiting: this.#waiting.length });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const one: Waiting = { bytes, resolve };
    this.#waiting.push(one);
    const leave = (): void => {
      const at = this.#waiting.indexOf(one);
      if (at < 0) return; // it has been given its memory
      this.#waiting.splice(at, 1);
      reject(signal.reason);
      this.#next();
    };
    signal.addEventListener("abort", leave, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  #next(): void {
    for (let [first] = this.#waiting; first && first.bytes <= this.#freeBytes; [first] = this.#waiting) {
      this.#waiting.shift();
      this.#freeBytes -= first.bytes;
      first.resolve();
    }
  }
}

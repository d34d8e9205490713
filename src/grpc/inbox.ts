/** Messages that have come and were not asked for yet; the peer's window opens as they are taken. */
import type { Framed } from "./message-reader.ts";

export class Inbox {
  readonly #messages: Framed[] = [];
  readonly #taken: (message: Framed) => void;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  /** `taken` hears of each message that somebody has taken out. */
  constructor(taken: (message: Framed) => void) {
    this.#taken = taken;
  }

  push(message: Framed): void {
    this.#messages.push(message);
    this.#wake?.();
  }

  /** What has come before is still taken. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  /** At once: what has come is of no use any more. */
  fail(error: Error): void {
    this.#error ??= error;
    this.#messages.length = 0;
    this.#wake?.();
  }

  async next(): Promise<Framed | undefined> {
    for (;;) {
      if (this.#error) throw this.#error;
      const message = this.#messages.shift();
      if (message) {
        this.#taken(message);
        return message;
      }
      if (this.#ended) return undefined;
      await new Promise<void>((wake) => (this.#wake = wake));
      this.#wake = undefined;
    }
  }
}

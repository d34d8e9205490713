/**
 * Messages that arrived and were not requested yet; the peer's window opens as they are taken. While none waits, it
 * also opens for the incomplete message as its bytes arrive: that message has a size limit of its own.
 */
import { sizeOnWire, type Framed } from "./message-reader.ts";

export class Inbox {
  readonly #messages: Framed[] = [];
  readonly #consume: (bytes: number) => void;
  /** Bytes that arrived and were not consumed. */
  #owed = 0;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  /** `consume` is called with how many bytes more the peer may send. */
  constructor(consume: (bytes: number) => void) {
    this.#consume = consume;
  }

  /** This many bytes arrived; the messages that they completed have been pushed. */
  came(bytes: number): void {
    this.#owed += bytes;
    if (this.#messages.length === 0) this.#settle(this.#owed);
  }

  #settle(bytes: number): void {
    this.#owed -= bytes;
    if (bytes > 0) this.#consume(bytes);
  }

  push(message: Framed): void {
    this.#messages.push(message);
    this.#wake?.();
  }

  /** Messages that arrived before are still returned. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  /** At once: messages that arrived before are dropped. */
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
        this.#settle(this.#messages.length === 0 ? this.#owed : Math.min(this.#owed, sizeOnWire(message)));
        return message;
      }
      if (this.#ended) return undefined;
      await new Promise<void>((wake) => (this.#wake = wake));
      this.#wake = undefined;
    }
  }
}

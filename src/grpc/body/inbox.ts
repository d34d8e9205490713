/**
 * Messages that have come and were not asked for yet; the peer's window opens as they are taken. While none waits, it
 * opens for the message under way as its bytes come, however long that is: it is bounded by its own limit.
 */
import { sizeOnWire, type Framed } from "./message-reader.ts";

export class Inbox {
  readonly #messages: Framed[] = [];
  readonly #consume: (bytes: number) => void;
  /** Bytes that have come and were not consumed. */
  #owed = 0;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  /** `consume` hears how many bytes more the peer may send. */
  constructor(consume: (bytes: number) => void) {
    this.#consume = consume;
  }

  /** So many bytes have come; the messages that they completed have been pushed. */
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
        this.#settle(this.#messages.length === 0 ? this.#owed : Math.min(this.#owed, sizeOnWire(message)));
        return message;
      }
      if (this.#ended) return undefined;
      await new Promise<void>((wake) => (this.#wake = wake));
      this.#wake = undefined;
    }
  }
}

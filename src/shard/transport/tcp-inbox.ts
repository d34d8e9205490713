/**
 * Received messages of a stream that are not read yet. It needs no limit of its own: the sender stops when the credit
 * that the reader gave is used up.
 */
export class Inbox<T> implements AsyncIterable<T> {
  #items: T[] = [];
  #ended = false;
  #failure: Error | undefined;
  #wake: () => void = () => {};

  put(item: T): void {
    this.#items.push(item);
    this.#wake();
  }

  /** Messages received before are still read. */
  close(): void {
    this.#ended = true;
    this.#wake();
  }

  /** Messages received before are still read; then the reader gets the failure. */
  fail(failure: Error): void {
    this.#failure ??= failure;
    this.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      yield* this.#items.splice(0);
      if (this.#items.length > 0) continue;
      if (this.#failure) throw this.#failure;
      if (this.#ended) return;
      await new Promise<void>((wake) => {
        this.#wake = wake;
      });
    }
  }
}

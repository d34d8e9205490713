/** Items pushed by the world, read by one reader; nothing is lost before the end or the failure. */
export class Stream<T> implements AsyncIterable<T> {
  readonly #items: T[] = [];
  #end: { readonly error?: unknown } | undefined;
  #wake: (() => void) | undefined;

  push(item: T): void {
    if (this.#end) return;
    this.#items.push(item);
    this.#wake?.();
  }

  end(): void {
    this.#end ??= {};
    this.#wake?.();
  }

  fail(error: unknown): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      while (this.#items.length > 0) yield this.#items.shift() as T;
      if (this.#end) {
        if ("error" in this.#end) throw this.#end.error;
        return;
      }
      await new Promise<void>((wake) => (this.#wake = wake));
    }
  }
}

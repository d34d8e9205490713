/** Pieces of many writers for one reader. A writer waits while too much is unread: memory stays bounded. */
export class PieceQueue<T> {
  readonly #itemsMax: number;
  readonly #items: T[] = [];
  #readable = Promise.withResolvers<void>();
  #writable = Promise.withResolvers<void>();
  #end: { readonly error?: unknown } | undefined;

  constructor(itemsMax: number) {
    this.#itemsMax = itemsMax;
  }

  /** Resolves when there is space for it; at once, without effect, when the reader has left. */
  async push(item: T): Promise<void> {
    while (this.#items.length >= this.#itemsMax && !this.#end) await this.#writable.promise;
    if (this.#end) return;
    this.#items.push(item);
    this.#readable.resolve();
  }

  /** Nothing more comes; with an error, the reader gets it after what is there. */
  end(end: { readonly error?: unknown } = {}): void {
    this.#end ??= end;
    this.#readable.resolve();
    this.#writable.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    try {
      for (;;) {
        const item = this.#items.shift();
        if (item !== undefined) {
          this.#writable.resolve();
          this.#writable = Promise.withResolvers();
          yield item;
          continue;
        }
        if (this.#end) {
          if (this.#end.error !== undefined) throw this.#end.error as Error;
          return;
        }
        await this.#readable.promise;
        this.#readable = Promise.withResolvers();
      }
    } finally {
      this.end();
    }
  }
}

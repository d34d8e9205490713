import { Fault } from "./fault.ts";

/** A bounded queue between two parts of the program: a full one makes the writer wait, or refuses. */
export class Channel<T> implements AsyncIterable<T> {
  readonly #capacity: number;
  #items: T[] = [];
  #closed = false;
  #readers: (() => void)[] = [];
  #writers: (() => void)[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#items.length;
  }

  /** Takes the item, or says no at once. */
  offer(item: T): boolean {
    if (this.#closed || this.#items.length >= this.#capacity) return false;
    this.#items.push(item);
    this.#readers.shift()?.();
    return true;
  }

  async send(item: T): Promise<void> {
    while (!this.#closed && this.#items.length >= this.#capacity)
      await new Promise<void>((wake) => this.#writers.push(wake));
    if (this.#closed) throw new Fault("unavailable", "send to a closed channel");
    this.#items.push(item);
    this.#readers.shift()?.();
  }

  /** What was sent before is still read; then readers end. */
  close(): void {
    this.#closed = true;
    for (const wake of this.#readers.splice(0)) wake();
    for (const wake of this.#writers.splice(0)) wake();
  }

  async *batches(itemsMax: number): AsyncGenerator<T[]> {
    for (;;) {
      while (this.#items.length === 0) {
        if (this.#closed) return;
        await new Promise<void>((wake) => this.#readers.push(wake));
      }
      const batch = this.#items.splice(0, itemsMax);
      for (const wake of this.#writers.splice(0, batch.length)) wake();
      yield batch;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for await (const batch of this.batches(64)) yield* batch;
  }
}

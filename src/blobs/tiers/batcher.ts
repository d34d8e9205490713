/** Collects items while calls are in progress: the next call carries all of them, up to a size. */
export type BatcherOptions<Item, Answer> = {
  readonly bytesMax: () => Promise<number>;
  readonly countMax: number;
  readonly callsMax: number;
  /** Returns one answer for each item, in order. */
  readonly call: (items: readonly Item[]) => Promise<readonly (Answer | Error)[]>;
};

type Waiting<Item, Answer> = {
  readonly item: Item;
  readonly bytes: number;
  readonly done: PromiseWithResolvers<Answer>;
};

export class Batcher<Item, Answer> {
  readonly #options: BatcherOptions<Item, Answer>;
  readonly #waiting: Waiting<Item, Answer>[] = [];
  #calls = 0;

  constructor(options: BatcherOptions<Item, Answer>) {
    this.#options = options;
  }

  add(item: Item, bytes: number): Promise<Answer> {
    const done = Promise.withResolvers<Answer>();
    this.#waiting.push({ item, bytes, done });
    if (this.#calls < this.#options.callsMax) void this.#run();
    return done.promise;
  }

  async #run(): Promise<void> {
    this.#calls += 1;
    // Items added in the same turn of the event loop join this call.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#callOnce();
    this.#calls -= 1;
  }

  async #callOnce(): Promise<void> {
    let batch: Waiting<Item, Answer>[] = [];
    try {
      const bytesMax = await this.#options.bytesMax();
      batch = this.#next(bytesMax);
      const answers = await this.#options.call(batch.map(({ item }) => item));
      for (const [i, { done }] of batch.entries()) {
        const answer = answers[i];
        if (answer === undefined || answer instanceof Error) done.reject(answer ?? new Error("no answer"));
        else done.resolve(answer);
      }
    } catch (error) {
      for (const { done } of batch.length > 0 ? batch : this.#waiting.splice(0)) done.reject(error);
    }
  }

  #next(bytesMax: number): Waiting<Item, Answer>[] {
    let count = 0;
    for (let bytes = 0; count < this.#waiting.length && count < this.#options.countMax; count += 1) {
      bytes += this.#waiting[count]?.bytes ?? 0;
      if (bytes > bytesMax && count > 0) break;
    }
    return this.#waiting.splice(0, count);
  }
}

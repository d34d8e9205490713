/**
 * Work that many ask for at once is done for all of them together. A caller who asks while it is under way waits for
 * the next run, because the one under way may have looked too early: so no caller gets an old answer. However many ask,
 * at most one run waits behind the one under way.
 */
export class SharedRuns<T> {
  readonly #running = new Map<string, Promise<unknown>>();
  readonly #waiting = new Map<string, Promise<T>>();

  async take(key: string, work: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (!running) return await this.#run(key, work);
    const joined = this.#waiting.get(key);
    if (joined) return await joined;
    const next = (async () => {
      await running.catch(() => {}); // who asked for that one hears of its failure
      this.#waiting.delete(key);
      return await this.#run(key, work);
    })();
    this.#waiting.set(key, next);
    return await next;
  }

  async #run(key: string, work: () => Promise<T>): Promise<T> {
    const run = work();
    this.#running.set(key, run);
    try {
      return await run;
    } finally {
      if (this.#running.get(key) === run) this.#running.delete(key);
    }
  }
}

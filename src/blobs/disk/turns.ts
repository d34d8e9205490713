/** Runs operations one at a time for each name; different names do not wait for each other. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  async take<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name);
    const mine = before ? before.catch(() => {}).then(work) : work();
    this.#last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(name) === mine) this.#last.delete(name);
    }
  }
}

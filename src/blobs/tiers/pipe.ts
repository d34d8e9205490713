/** Passes parts from a writer to a reader, one at a time. */
export class Pipe {
  #next = Promise.withResolvers<Uint8Array | undefined>();
  #taken = Promise.withResolvers<void>();
  #isAbandoned = false;

  /** Resolves when the reader took the part, or abandoned the pipe. */
  async send(bytes: Uint8Array): Promise<void> {
    if (this.#isAbandoned) return;
    this.#next.resolve(bytes);
    await this.#taken.promise;
  }

  get isAbandoned(): boolean {
    return this.#isAbandoned;
  }

  end(): void {
    this.#next.resolve(undefined);
  }

  fail(error: Error): void {
    this.#next.promise.catch(() => {});
    this.#next.reject(error);
  }

  abandon(): void {
    this.#isAbandoned = true;
    this.#taken.resolve();
  }

  async *parts(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const bytes = await this.#next.promise;
      if (bytes === undefined) return;
      yield bytes;
      // The reader asks for the next part, so it is done with this one.
      const { resolve } = this.#taken;
      this.#next = Promise.withResolvers();
      if (!this.#isAbandoned) this.#taken = Promise.withResolvers();
      resolve();
    }
  }
}

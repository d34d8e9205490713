/** Limits concurrent calls; the others wait in order. */
export class Gate {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(atOnceMax: number) {
    this.#free = atOnceMax;
  }

  async through<T>(run: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((mine) => this.#waiting.push(mine));
    try {
      return await run();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}

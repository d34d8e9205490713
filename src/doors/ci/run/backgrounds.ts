/** Steps that run beside the others; their results count when a later step waits for them (CI-67). */

export const backgroundsMax = 10;

type Running<T> = {
  readonly id: string;
  readonly end: Promise<T>;
  readonly controller: AbortController;
  isOver: boolean;
};

export class Backgrounds<T> {
  #running: Running<T>[] = [];

  /** Waits first when too many run already. */
  async start(id: string, work: (signal: AbortSignal) => Promise<T>): Promise<void> {
    for (let active = this.#active(); active.length >= backgroundsMax; active = this.#active())
      await Promise.race(active.map(({ end }) => end));
    const controller = new AbortController();
    const running: Running<T> = { id, end: work(controller.signal), controller, isOver: false };
    this.#running.push(running);
    const over = (): void => {
      running.isOver = true;
    };
    running.end.then(over, over); // who waits for it hears of an error
  }

  get isActive(): boolean {
    return this.#running.length > 0;
  }

  async wait(id: string): Promise<readonly T[]> {
    return await this.#take(({ id: other }) => other.toLowerCase() === id.toLowerCase());
  }

  async waitAll(): Promise<readonly T[]> {
    return await this.#take(() => true);
  }

  async cancel(id: string): Promise<readonly T[]> {
    for (const running of this.#running) if (running.id.toLowerCase() === id.toLowerCase()) running.controller.abort();
    return await this.wait(id);
  }

  #active(): readonly Running<T>[] {
    return this.#running.filter((running) => !running.isOver);
  }

  async #take(wanted: (running: Running<T>) => boolean): Promise<readonly T[]> {
    const taken = this.#running.filter((running) => wanted(running));
    this.#running = this.#running.filter((running) => !wanted(running));
    return await Promise.all(taken.map(({ end }) => end));
  }
}

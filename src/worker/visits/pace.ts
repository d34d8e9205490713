import { setImmediate as turn } from "node:timers/promises";

const longMs = 3;
const lookEvery = 16;

/** For long loops of small synchronous calls: yields to the event loop every few milliseconds. */
export class Pace {
  #sinceMono = performance.now();
  #count = 0;

  isLong(): boolean {
    this.#count += 1;
    return this.#count % lookEvery === 0 && performance.now() - this.#sinceMono > longMs;
  }

  async rest(): Promise<void> {
    await turn();
    this.#sinceMono = performance.now();
  }
}

/** Where parts of messages lie until their handler has dealt with them. The memory is used again and again. */

/** Several of them stay in a processor's cache, and going from one to the next costs little beside filling one. */
export const partMemoryBytes = 64 * 1024;
/** Of those that lie ready; more are left to the garbage collector. 4 MiB for the whole process. */
const poolMax = 64;
const pool: PartMemory[] = [];

export class PartMemory {
  readonly bytes: Buffer = Buffer.allocUnsafeSlow(partMemoryBytes);
  used = 0;
  /** Who fills it, and whoever has a part that lies here. */
  #holders = 1;

  static take(): PartMemory {
    const memory = pool.pop() ?? new PartMemory();
    memory.used = 0;
    memory.#holders = 1;
    return memory;
  }

  hold(): void {
    this.#holders += 1;
  }

  release(): void {
    this.#holders -= 1;
    if (this.#holders === 0 && pool.length < poolMax) pool.push(this);
  }
}

/** Memory for parts of messages until their handler has processed them. It is reused. */

/** Several of these fit into a processor's cache, and switching to the next costs little compared with filling one. */
export const partMemoryBytes = 64 * 1024;
/** Free pieces kept for reuse; more are left to the garbage collector. 4 MiB for the whole process. */
const poolMax = 64;
const pool: PartMemory[] = [];

export class PartMemory {
  readonly bytes: Buffer = Buffer.allocUnsafeSlow(partMemoryBytes);
  used = 0;
  /** The inbox that fills it, and the users of parts in it. */
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

import { hash32 } from "#base/random.ts";
import type { Command } from "#kernel/model/command.ts";

const poisonsMax = 1_000;

/** Hashes of commands that broke a shard: they are not tried again. */
export class Poisons {
  readonly #hashes = new Set<number>();

  add(command: Command): void {
    if (this.#hashes.size < poisonsMax) this.#hashes.add(fingerprint(command));
  }

  has(command: Command): boolean {
    return this.#hashes.size > 0 && this.#hashes.has(fingerprint(command));
  }
}

const fingerprint = (command: Command): number => (isPlain(command) ? hash32(JSON.stringify(command)) : -1);

/** Whether the value can be encoded at all. */
function isPlain(value: object): boolean {
  try {
    JSON.stringify(value);
    return true;
  } catch {
    return false;
  }
}

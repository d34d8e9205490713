/**
 * The keys of a mesh. The first one seals what is sent, each of them opens what arrives. So a key is rotated by
 * installing the new one everywhere, then using it everywhere, then removing the old one everywhere.
 */
import { Fault } from "#base/fault.ts";

const keysMax = 16;

export class Keyring {
  #keys: readonly Uint8Array[];

  constructor(keys: readonly Uint8Array[] = []) {
    this.#keys = [];
    for (const key of keys) this.install(key);
  }

  get isEmpty(): boolean {
    return this.#keys.length === 0;
  }

  get keys(): readonly Uint8Array[] {
    return this.#keys;
  }

  get primary(): Uint8Array | undefined {
    return this.#keys[0];
  }

  /** The key opens messages from now on; the first key installed also seals. */
  install(key: Uint8Array): void {
    if (![16, 24, 32].includes(key.length))
      throw new Fault("invalid", "install a mesh key", { bytes: key.length, why: "a key has 16, 24 or 32 bytes" });
    if (this.#has(key)) return;
    if (this.#keys.length >= keysMax) throw new Fault("exhausted", "install a mesh key", { keysMax });
    this.#keys = [...this.#keys, Uint8Array.from(key)];
  }

  /** The key seals messages from now on. */
  use(key: Uint8Array): void {
    if (!this.#has(key)) throw new Fault("not-found", "use a mesh key", { why: "it is not installed" });
    this.#keys = [Uint8Array.from(key), ...this.#keys.filter((other) => !same(other, key))];
  }

  remove(key: Uint8Array): void {
    const { primary } = this;
    if (primary && same(primary, key)) throw new Fault("invalid", "remove a mesh key", { why: "it is in use" });
    this.#keys = this.#keys.filter((other) => !same(other, key));
  }

  #has(key: Uint8Array): boolean {
    return this.#keys.some((other) => same(other, key));
  }
}

const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

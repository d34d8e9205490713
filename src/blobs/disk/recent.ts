/** What was looked at lately: at least the last `half` of it and at most twice as much. */
export class Recent<K, V> {
  readonly #half: number;
  #young = new Map<K, V>();
  #old = new Map<K, V>();

  constructor(half: number) {
    this.#half = half;
  }

  get(key: K): V | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: K, value: V): void {
    this.#young.set(key, value);
    if (this.#young.size <= this.#half) return;
    this.#old = this.#young;
    this.#young = new Map();
  }
}

/** The last few answers about what never changes, by key: as many as their size together allows. */
export class Recent<T> {
  readonly #sizeMax: number;
  readonly #kept = new Map<string, { readonly value: T; readonly size: number }>();
  #size = 0;

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  get(key: string): T | undefined {
    const found = this.#kept.get(key);
    if (!found) return undefined;
    this.#kept.delete(key); // the latest is last
    this.#kept.set(key, found);
    return found.value;
  }

  set(key: string, value: T, size: number): void {
    this.delete(key);
    this.#kept.set(key, { value, size });
    this.#size += size;
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= this.#sizeMax) return;
      this.delete(oldest);
    }
  }

  clear(): void {
    this.#kept.clear();
    this.#size = 0;
  }

  delete(key: string): void {
    this.#size -= this.#kept.get(key)?.size ?? 0;
    this.#kept.delete(key);
  }
}

/**
 * A map from numbers that are assigned in order and never reused, stored in pages of neighbouring numbers. A `Map` of
 * the same size takes five times the memory, is rebuilt as a whole after a number of deletions, and each rebuild leaves
 * a dead copy whose references keep objects out of young-generation collection.
 */
const pageSize = 64;

type Page<T> = { readonly first: number; count: number; readonly items: (T | undefined)[] };

export class Numbered<T extends { readonly no: number }> {
  readonly #pages = new Map<number, Page<T>>();
  /** The page used last: related things have numbers close to each other. */
  #last: Page<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The number may come from a caller, and may not even be a number. */
  get(no: number): T | undefined {
    if (typeof no !== "number") return undefined;
    const item = this.#page(Math.floor(no / pageSize))?.items[no & (pageSize - 1)];
    return item?.no === no ? item : undefined;
  }

  has(no: number): boolean {
    return this.get(no) !== undefined;
  }

  set(no: number, item: T): void {
    const number = Math.floor(no / pageSize);
    let page = this.#page(number);
    if (!page) {
      page = { first: number, count: 0, items: Array.from({ length: pageSize }) };
      this.#pages.set(number, page);
      this.#last = page;
    }
    const slot = no & (pageSize - 1);
    if (page.items[slot] === undefined) {
      page.count += 1;
      this.#size += 1;
    }
    page.items[slot] = item;
  }

  delete(no: number): boolean {
    if (this.get(no) === undefined) return false;
    const number = Math.floor(no / pageSize);
    const page = this.#page(number) as Page<T>;
    page.items[no & (pageSize - 1)] = undefined;
    page.count -= 1;
    this.#size -= 1;
    if (page.count === 0) {
      this.#pages.delete(number);
      this.#last = undefined;
    }
    return true;
  }

  /** In order. Entries added or removed during the iteration may or may not be seen, as with a `Map`. */
  *values(): Generator<T, undefined> {
    for (const { items } of this.#pages.values()) for (const item of items) if (item !== undefined) yield item;
    return undefined;
  }

  *keys(): Generator<number, undefined> {
    for (const { no } of this.values()) yield no;
    return undefined;
  }

  #page(number: number): Page<T> | undefined {
    const last = this.#last;
    if (last?.first === number) return last;
    const page = this.#pages.get(number);
    if (page) this.#last = page;
    return page;
  }
}

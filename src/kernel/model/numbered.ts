/**
 * Things by their numbers, which are given in order and never again: pages of neighbours instead of a table of hashes.
 * A `Map` of as many takes five times the memory, is made anew with all that is in it after every so many deletions,
 * and each time leaves a dead copy behind that keeps what it names from being collected with the young.
 */
const pageSize = 64;

type Page<T> = { readonly first: number; count: number; readonly items: (T | undefined)[] };

export class Numbered<T extends { readonly no: number }> {
  readonly #pages = new Map<number, Page<T>>();
  /** The one looked at last: what belongs together has numbers close to each other. */
  #last: Page<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Whoever asks may have made up the number, and it may be none at all. */
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

  /** In order; what comes or goes meanwhile is seen or left out, like with a `Map`. */
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

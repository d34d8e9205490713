/** A binary heap whose elements know their index, so that any of them can be moved or removed in log n steps. */
export type HeapNode = { heapAt: number };

export class Heap<T extends HeapNode> {
  readonly #items: T[] = [];
  readonly #before: (a: T, b: T) => boolean;

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  top(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    item.heapAt = this.#items.length;
    this.#items.push(item);
    this.#up(item);
  }

  remove(item: T): void {
    const last = this.#items.pop() as T;
    if (last !== item) {
      last.heapAt = item.heapAt;
      this.#items[last.heapAt] = last;
      this.#up(last);
      this.#down(last);
    }
    item.heapAt = -1;
  }

  /** Call when the item has become smaller than it was. */
  rise(item: T): void {
    this.#up(item);
  }

  /** Call when the item has become larger than it was. */
  sink(item: T): void {
    this.#down(item);
  }

  #up(item: T): void {
    const items = this.#items;
    let at = item.heapAt;
    while (at > 0) {
      const parentAt = (at - 1) >> 1;
      const parent = items[parentAt] as T;
      if (!this.#before(item, parent)) break;
      items[at] = parent;
      parent.heapAt = at;
      at = parentAt;
    }
    items[at] = item;
    item.heapAt = at;
  }

  #down(item: T): void {
    const items = this.#items;
    let at = item.heapAt;
    for (;;) {
      const leftAt = 2 * at + 1;
      if (leftAt >= items.length) break;
      const rightAt = leftAt + 1;
      const childAt =
        rightAt < items.length && this.#before(items[rightAt] as T, items[leftAt] as T) ? rightAt : leftAt;
      const child = items[childAt] as T;
      if (!this.#before(child, item)) break;
      items[at] = child;
      child.heapAt = at;
      at = childAt;
    }
    items[at] = item;
    item.heapAt = at;
  }
}

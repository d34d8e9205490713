/** Anything that can be put down to be looked at. `nextTodo` is undefined when it is not, null when it is the last. */
export type TodoItem<T> = { nextTodo: T | null | undefined };

/**
 * What is to be looked at, in order and each only once: a list that runs through the things themselves. A `Set` that
 * goes from none to one and back with every command makes itself anew again and again.
 */
export class Todo<T extends TodoItem<T>> {
  #first: T | null = null;
  #last: T | null = null;

  get isEmpty(): boolean {
    return this.#first === null;
  }

  add(item: T): void {
    if (item.nextTodo !== undefined) return;
    item.nextTodo = null;
    if (this.#last) this.#last.nextTodo = item;
    else this.#first = item;
    this.#last = item;
  }

  /** Takes out the first: from here on it may be put down again. */
  shift(): T | undefined {
    const item = this.#first;
    if (!item) return undefined;
    this.#first = item.nextTodo ?? null;
    if (!this.#first) this.#last = null;
    item.nextTodo = undefined;
    return item;
  }

  clear(): void {
    while (this.shift());
  }
}

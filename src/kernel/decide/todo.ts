/**
 * An element of a Todo list. `nextTodo` is undefined when the element is not in the list, and null when it is the last.
 */
export type TodoItem<T> = { nextTodo: T | null | undefined };

/**
 * A queue without duplicates, linked through its elements. A `Set` that alternates between zero and one element with
 * every command would rebuild its table again and again.
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

  /** Removes and returns the first element, which may then be added again. */
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

/** To begin with. Shared, so nobody may push to it. */
export const nothing: readonly never[] = [];

/**
 * The list with one more item; the list that was given is not to be used any more. An empty list that is pushed to
 * makes room for 17 items at once and keeps it, which is too much where millions of short lists are kept.
 */
export function added<T>(list: readonly T[], item: T): readonly T[] {
  switch (list.length) {
    case 0:
      return [item];
    case 1:
      return [list[0] as T, item];
    case 2:
      return [list[0] as T, list[1] as T, item];
    case 3:
      return [list[0] as T, list[1] as T, list[2] as T, item];
    default:
      (list as T[]).push(item); // from four on it was made here
      return list;
  }
}

/** The empty list. Shared: never push to it. */
export const nothing: readonly never[] = [];

/**
 * The list with one more item; the given list must not be used any more. Pushing to an empty array reserves space for
 * 17 items and keeps it, which is too much where millions of short lists are kept.
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
      (list as T[]).push(item); // a list of four or more was created here
      return list;
  }
}

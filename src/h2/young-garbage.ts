/**
 * Everything that is read from a socket lies outside of V8's heap. V8 knows how much of it there is, but not that
 * nearly all of it is garbage already, and answers with collections of the whole heap, on several threads: that took
 * more CPU than reading, hashing and checking an upload together. A collection of the young alone, asked for in time,
 * takes a millisecond and frees it all.
 *
 * Only in a process that was started with --expose-gc, as `millrace up` is; elsewhere nothing happens.
 */

/** V8 loses its patience at about twice as much. */
export const bytesBetween = 16 * 1024 * 1024;

let bytesSince = 0;

/** So many bytes more were read. */
export function countRead(bytes: number): void {
  bytesSince += bytes;
  if (bytesSince < bytesBetween) return;
  bytesSince = 0;
  globalThis.gc?.({ type: "minor" });
}

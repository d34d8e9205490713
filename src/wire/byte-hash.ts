/**
 * A hash of some bytes, for caches. Senders can produce collisions: use it only for tables in which a collision costs
 * no more than a miss.
 */
export function byteHash(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let i = start; i < end; i += 1) hash = Math.imul(hash ^ (bytes[i] as number), 0x0100_0193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/**
 * A number for some bytes, for tables that keep what was read before. Whoever sends bytes can make them fall together:
 * fit only for tables in which that costs no more than finding nothing.
 */
export function byteHash(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let i = start; i < end; i += 1) hash = Math.imul(hash ^ (bytes[i] as number), 0x0100_0193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

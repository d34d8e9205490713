/** How soon a content can be everywhere at best, whatever the method: what a run is measured against. */
export type Broadcast = {
  readonly sizeBytes: number;
  readonly unitBytes: number;
  readonly members: number;
  /** Bytes per second. */
  readonly originUp: number;
  readonly memberUp: number;
  readonly memberDown: number;
};

/**
 * In milliseconds: no faster than the origin sends it once, than a member receives it, than all uplinks together carry
 * it to all, and, for the last unit, than it doubles its copies from one machine to all.
 */
export function boundMs({ sizeBytes, unitBytes, members, originUp, memberUp, memberDown }: Broadcast): number {
  const all = (members * sizeBytes) / (originUp + members * memberUp);
  const hops = Math.floor(Math.log2(Math.max(1, members)));
  const fastest = Math.max(originUp, memberUp);
  const doubling = sizeBytes / originUp + (hops > 0 ? unitBytes / Math.min(fastest, memberDown) : 0);
  return 1_000 * Math.max(doubling, sizeBytes / memberDown, all);
}

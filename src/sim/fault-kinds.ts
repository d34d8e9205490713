/** Every kind of harm that the world can do by itself; what each does is in faults.ts. */
export const faultKinds = [
  "node-crash",
  "node-stop",
  "node-leaves",
  "executor-crash",
  "executor-stop",
  "wall-clock-jump",
  "store-clock-jump",
  "partition",
  "one-way-cut",
  "lossy-network",
  "doubling-network",
  "slow-network",
  "database-refuses",
  "database-loses",
  "database-unheard",
  "database-late",
  "database-slow",
  "database-outage",
  "database-cut-off",
  "evictions",
] as const;
export type FaultKind = (typeof faultKinds)[number];

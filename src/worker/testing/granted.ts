import type { Granted } from "#shard/client/executor.ts";

/** For tests: a claim of a task without special requirements. */
export const grantedTask = (more: Partial<Granted> = {}): Granted => ({
  task: 1,
  token: 7,
  job: 1,
  stage: 0,
  stageName: "s",
  tenant: "t",
  door: "d",
  kind: "k",
  key: "k",
  spec: "",
  planning: false,
  generation: 1,
  attempt: 1,
  leaseMs: 10_000,
  graceMs: 0,
  attemptMs: 3_600_000,
  effects: "pure",
  shard: 0,
  taskId: "t0-1",
  jobId: "j0-1",
  ...more,
});

import type { TaskTemplate } from "#kernel/model/model.ts";

/** For tests that do not care about times. */
export const plainTemplate = {
  kind: "k",
  requires: [],
  leaseMs: 60_000,
  attemptsMax: 3,
  retryOn: "infrastructure",
  backoffMs: 50,
  backoffMsMax: 50,
  queueMs: 3_600_000,
  attemptMs: 60_000,
  effects: "pure",
  speculate: false,
  graceMs: 0,
} as const satisfies TaskTemplate;

import type { GoalChange } from "#doors/deploy/goal/goal.ts";

/** The digest of ten bytes that is easy to tell apart: the same letter all through. */
export const digest = (letter: string): string => `${letter.repeat(64)}/10`;

/** A whole release of manifest `a` to all machines, but for what a test says. */
export const change = (more: Partial<GoalChange> = {}): GoalChange => ({
  kind: "release",
  halted: false,
  release: "j1-1",
  manifest: digest("a"),
  labels: [],
  stable: null,
  sharePpm: 1_000_000,
  named: [],
  wave: 0,
  evidence: null,
  ...more,
});

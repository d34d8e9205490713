/** Where a machine is on its way to a version, as people are shown it. Pure. */
import type { Seen } from "#doors/deploy/fleet/desk.ts";

export const shownStates = [
  "waiting",
  "staging",
  "staged",
  "activating",
  "healthy",
  "failed",
  "reverted",
  "silent",
] as const;
export type ShownState = (typeof shownStates)[number];
export type StateCounts = Readonly<Record<ShownState, number>>;

export type Wanted = {
  readonly service: string;
  /** Null while nothing was built yet. */
  readonly manifest: string | null;
  readonly silentAfterMs: number;
};

/** "waiting": it runs what it ran before, and its turn has not come. */
export function shownState({ reports }: Pick<Seen, "reports">, wanted: Wanted): ShownState {
  const report = reports.find(({ service }) => service === wanted.service);
  if (!report) return "waiting";
  if (report.agoMs > wanted.silentAfterMs) return "silent";
  if (report.state === "idle") return "waiting";
  if (report.state !== "healthy") return report.state;
  return wanted.manifest !== null && report.running === wanted.manifest ? "healthy" : "waiting";
}

export const countStates = (countOf: (state: ShownState) => number): StateCounts =>
  Object.fromEntries(shownStates.map((state) => [state, countOf(state)])) as Record<ShownState, number>;

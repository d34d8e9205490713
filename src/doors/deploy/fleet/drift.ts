/** What a machine runs instead of what its goal says. Pure. */
import { isNamed } from "#doors/deploy/agent/machine.ts";
import type { Goal } from "#doors/deploy/goal/goal.ts";
import { pinOf, tellPin } from "#doors/deploy/goal/pins.ts";
import type { Seen } from "./desk.ts";

export type Drift = {
  readonly machine: string;
  readonly region: string;
  readonly running: string | null;
  readonly wanted: string;
  readonly state: string;
  readonly why: string;
};

/** Undefined: it runs what it should, or the goal is not about it. */
export function driftOf(seen: Seen, goal: Goal): Drift | undefined {
  const { machine, region, labels } = seen;
  if (region !== goal.region || !goal.labels.every((label) => labels.includes(label))) return undefined;
  const wanted = isNamed(machine, goal) ? goal.manifest : goal.stable;
  const report = seen.reports.find(({ service }) => service === goal.service);
  if (wanted === null || report?.running === wanted) return undefined;
  const pin = pinOf(seen, goal.pins);
  const why = pin ? tellPin(pin) : (report?.why ?? "it has not reported about the service");
  return { machine, region, running: report?.running ?? null, wanted, state: report?.state ?? "silent", why };
}

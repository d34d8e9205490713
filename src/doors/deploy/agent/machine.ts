/**
 * What an agent does next, from what it knows. Pure: the loop in agent.ts carries it out and asks again.
 *
 * AG1 Bytes are fetched ahead; a version is activated only on a goal that names this machine.
 * AG2 A version that failed here is not tried again by the same release, whatever else happens (a reboot, a new agent).
 * AG3 While a halt stands, nothing is activated. What runs goes on.
 * AG5 A pinned machine runs the pin's version, whatever the goal's is (goal/pins.ts).
 * AG4 A machine outside the share keeps what runs; one that runs nothing takes the last version that ended well, and
 *     only then, when it is its turn, the new one.
 */
import { isInShare } from "#doors/deploy/goal/membership.ts";
import type { Goal } from "#doors/deploy/goal/goal.ts";
import { pinOf, tellPin } from "#doors/deploy/goal/pins.ts";

export type Knowledge = {
  readonly machine: string;
  readonly labels?: readonly string[];
  /** The newest goal that this machine accepted. */
  readonly goal: Goal | undefined;
  /** The manifests whose bytes are complete and verified here. */
  readonly staged: ReadonlySet<string>;
  /** The manifest that runs. */
  readonly running: string | undefined;
  /** What failed here, as `<release>:<manifest>`. */
  readonly failed: ReadonlySet<string>;
};

export type Step =
  | { readonly kind: "stage"; readonly manifest: string }
  | { readonly kind: "activate"; readonly manifest: string }
  | { readonly kind: "idle"; readonly why: string };

export function nextStep(known: Knowledge): Step {
  const { goal, staged, running } = known;
  if (!goal) return { kind: "idle", why: "no goal yet" };
  const wanted = wantedManifest(known, goal);
  if (goal.halted) return { kind: "idle", why: "halted" };
  if (wanted !== undefined && wanted !== running) {
    if (known.failed.has(failureKey(goal, wanted))) return { kind: "idle", why: "this version failed here" };
    return staged.has(wanted) ? { kind: "activate", manifest: wanted } : { kind: "stage", manifest: wanted };
  }
  const pin = pinOf({ labels: [], ...known }, goal.pins);
  if (pin) return { kind: "idle", why: tellPin(pin) };
  // Its turn may come with the next wave: fetch now, activate then (AG1).
  const next = goal.manifest;
  if (next !== null && !staged.has(next) && !known.failed.has(failureKey(goal, next)))
    return { kind: "stage", manifest: next };
  return { kind: "idle", why: wanted === undefined ? "not in this wave" : "runs what it should" };
}

/** Undefined: whatever runs may go on. */
function wantedManifest({ machine, labels = [], running, failed }: Knowledge, goal: Goal): string | undefined {
  const pin = pinOf({ machine, labels }, goal.pins);
  if (pin) return pin.manifest;
  const { stable, manifest } = goal;
  if (running === undefined && stable !== null && stable !== manifest && !failed.has(failureKey(goal, stable)))
    return stable;
  return manifest !== null && isNamed(machine, goal) ? manifest : undefined;
}

export const isNamed = (machine: string, { sharePpm, named, release }: Goal): boolean =>
  named.includes(machine) || isInShare(machine, release, sharePpm);

export const failureKey = ({ release }: Goal, manifest: string): string => `${release}:${manifest}`;

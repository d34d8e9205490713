/**
 * Whether a wave is healthy, from what its machines reported. Pure.
 *
 * HJ1 No data is not healthy: a wave passes only on reports that were made after its activation, and on enough of them.
 * HJ2 A machine that does not report counts against the limit for silent ones once it has been silent for long enough.
 * HJ4 A sequential test stops a wave as soon as its failures are surely too many, and shows its numbers.
 * HJ3 Time spent on staging is no failure: a machine that still fetches is waited for, until the release's deadline.
 */
import { wholePpm, type HealthLimits } from "#doors/deploy/service/service-file.ts";
import { limitsFor, sequential } from "./sequential.ts";

export type MachineState = "staging" | "staged" | "activating" | "healthy" | "failed" | "reverted";

export type MachineReport = {
  readonly machine: string;
  /** An idle machine has not begun yet. */
  readonly state: MachineState | "idle";
  /** The manifest that answers on the machine, not the one that it was asked to run. */
  readonly running: string | null;
  readonly agoMs: number;
  readonly why?: string | undefined;
};

/** What a machine's last report means for the wave that it is in. */
export type Standing = "healthy" | "failed" | "silent" | "working";

export type Activation = {
  /** The manifest that the wave's machines should run. */
  readonly manifest: string;
  /** Older reports say nothing about the wave (HJ1). */
  readonly activatedAgoMs: number;
  readonly silentAfterMs: number;
};

export function standingOf(
  report: Pick<MachineReport, "state" | "running" | "agoMs"> | undefined,
  { manifest, activatedAgoMs, silentAfterMs }: Activation,
): Standing {
  const agoMs = report?.agoMs ?? Infinity;
  const isFresh = report !== undefined && agoMs <= activatedAgoMs;
  if (isFresh && (report.state === "failed" || report.state === "reverted")) return "failed";
  if (Math.min(agoMs, activatedAgoMs) > silentAfterMs) return "silent";
  return isFresh && report.state === "healthy" && report.running === manifest ? "healthy" : "working";
}

/** The wave's machines. */
export type Counts = Readonly<Record<Standing, number>> & { readonly machines: number };

export type Verdict = Counts & {
  readonly verdict: "healthy" | "unhealthy" | "wait";
  /** For people: what decided, with the numbers. */
  readonly why: string;
};

export type Question = {
  readonly limits: HealthLimits;
  readonly bakeMs: number;
  readonly activatedAgoMs: number;
};

export function judge(counts: Counts, { limits, bakeMs, activatedAgoMs }: Question): Verdict {
  const { machines, healthy, failed, silent, working } = counts;
  const say = (verdict: Verdict["verdict"], why: string): Verdict => ({ verdict, ...counts, why });
  if (exceeds(failed, machines, limits.failedMax))
    return say("unhealthy", `${failed} of ${machines} failed, limit ${percent(limits.failedMax)}`);
  if (exceeds(silent, machines, limits.silentMax))
    return say("unhealthy", `${silent} of ${machines} are silent, limit ${percent(limits.silentMax)}`);
  const test = sequential({ healthy, failed }, limitsFor(limits.failedMax / wholePpm));
  const numbers = `evidence ${test.evidence.toFixed(1)}, bad from ${test.badAt.toFixed(1)}`;
  if (test.says === "bad")
    return say("unhealthy", `${failed} of the first ${healthy + failed} failed: stopped early (${numbers})`);
  const samplesMin = Math.min(limits.samplesMin, machines);
  if (machines === 0) return say("wait", "no machine matches the service's targets");
  // A few that still stage do not hold up a large wave whose others have shown enough.
  const isShown = test.says === "good" && healthy >= limits.samplesMin && !exceeds(working, machines, fewPpm);
  if (working > 0 && !isShown) return say("wait", `${working} of ${machines} are still staging or starting`);
  if (healthy < samplesMin) return say("wait", `${healthy} healthy reports, ${samplesMin} needed`);
  if (activatedAgoMs < bakeMs)
    return say("wait", `healthy; bakes for ${Math.ceil((bakeMs - activatedAgoMs) / 1_000)} s more`);
  return say("healthy", `${healthy} of ${machines} healthy, ${failed} failed, ${silent} silent`);
}

/** How many machines of a wave may still be under way when the others decide. */
const fewPpm = 50_000;

const exceeds = (count: number, of: number, limitPpm: number): boolean => count * wholePpm > of * limitPpm;

const percent = (ppm: number): string => `${ppm / 10_000}%`;

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
  readonly state: MachineState;
  /** The manifest that answers on the machine, not the one that it was asked to run. */
  readonly running: string | null;
  readonly atMs: number;
  readonly why?: string;
};

export type Verdict = {
  readonly verdict: "healthy" | "unhealthy" | "wait";
  readonly machines: number;
  readonly healthy: number;
  readonly failed: number;
  readonly silent: number;
  readonly working: number;
  /** For people: what decided, with the numbers. */
  readonly why: string;
};

export type Question = {
  /** The machines of the wave. */
  readonly members: readonly string[];
  /** The manifest that they should run. */
  readonly manifest: string;
  /** Reports before this say nothing about the wave (HJ1). */
  readonly activatedAtMs: number;
  readonly nowMs: number;
  readonly limits: HealthLimits;
  readonly bakeMs: number;
};

export function judge(question: Question, reports: ReadonlyMap<string, MachineReport>): Verdict {
  const { members, manifest, activatedAtMs, nowMs, limits, bakeMs } = question;
  let [healthy, failed, silent, working] = [0, 0, 0, 0];
  for (const machine of members) {
    const report = reports.get(machine);
    const isFresh = report !== undefined && report.atMs >= activatedAtMs;
    const lastMs = Math.max(report?.atMs ?? 0, activatedAtMs);
    if (isFresh && (report.state === "failed" || report.state === "reverted")) failed += 1;
    else if (nowMs - lastMs > limits.silentAfter) silent += 1;
    else if (isFresh && report.state === "healthy" && report.running === manifest) healthy += 1;
    else working += 1;
  }
  const counts = { machines: members.length, healthy, failed, silent, working };
  const say = (verdict: Verdict["verdict"], why: string): Verdict => ({ verdict, ...counts, why });
  if (exceeds(failed, members.length, limits.failedMax))
    return say("unhealthy", `${failed} of ${members.length} failed, limit ${percent(limits.failedMax)}`);
  if (exceeds(silent, members.length, limits.silentMax))
    return say("unhealthy", `${silent} of ${members.length} are silent, limit ${percent(limits.silentMax)}`);
  const test = sequential({ healthy, failed }, limitsFor(limits.failedMax / wholePpm));
  const numbers = `evidence ${test.evidence.toFixed(1)}, bad from ${test.badAt.toFixed(1)}`;
  if (test.says === "bad")
    return say("unhealthy", `${failed} of the first ${healthy + failed} failed: stopped early (${numbers})`);
  const samplesMin = Math.min(limits.samplesMin, members.length);
  if (members.length === 0) return say("wait", "no machine matches the service's targets");
  // A few that still stage do not hold up a large wave whose others have shown enough.
  const isShown = test.says === "good" && healthy >= limits.samplesMin && !exceeds(working, members.length, fewPpm);
  if (working > 0 && !isShown) return say("wait", `${working} of ${members.length} are still staging or starting`);
  if (healthy < samplesMin) return say("wait", `${healthy} healthy reports, ${samplesMin} needed`);
  const bakedMs = nowMs - activatedAtMs;
  if (bakedMs < bakeMs) return say("wait", `healthy; bakes for ${Math.ceil((bakeMs - bakedMs) / 1_000)} s more`);
  return say("healthy", `${healthy} of ${members.length} healthy, ${failed} failed, ${silent} silent`);
}

/** How many machines of a wave may still be under way when the others decide. */
const fewPpm = 50_000;

const exceeds = (count: number, of: number, limitPpm: number): boolean => count * wholePpm > of * limitPpm;

const percent = (ppm: number): string => `${ppm / 10_000}%`;

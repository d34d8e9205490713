/**
 * What a wave's checks say, from what was measured: a query of a metrics server, or the answer of a webhook. Pure.
 *
 * HC1 Only what was measured `after` the activation counts, and a wave passes only on `samples` good measurements.
 * HC2 No data is not healthy: an empty answer, an error or a value that is no number counts for nothing.
 * HC3 One bad measurement fails the wave.
 */
import type { HealthCheck } from "#doors/deploy/service/service-file.ts";
import type { Verdict } from "./judge.ts";

export type Measured =
  | { readonly kind: "value"; readonly value: number }
  | { readonly kind: "said"; readonly healthy: boolean; readonly why: string }
  | { readonly kind: "none"; readonly why: string };

export type CheckState = {
  readonly check: HealthCheck;
  readonly good: number;
  /** Why it failed, once it has. */
  readonly bad?: string;
  readonly last: string;
};

export const freshCheck = (check: HealthCheck): CheckState => ({ check, good: 0, last: "not asked yet" });

export const nameOf = (check: HealthCheck): string => ("webhook" in check ? check.webhook : check.query);

export function afterLook(state: CheckState, measured: Measured): CheckState {
  const { check, good } = state;
  if (measured.kind === "none") return { ...state, last: measured.why };
  const wrong =
    measured.kind === "said" ? (measured.healthy ? undefined : measured.why) : outside(check, measured.value);
  const last = measured.kind === "said" ? measured.why : String(measured.value);
  return wrong === undefined ? { ...state, good: good + 1, last } : { ...state, bad: wrong, last };
}

/** When the check may be asked again, in time since the activation. */
export const isDue = (
  { check, bad }: CheckState,
  times: { readonly sinceActivationMs: number; readonly sinceLookMs: number },
): boolean => bad === undefined && times.sinceActivationMs >= check.after && times.sinceLookMs >= check.every;

/** The verdict of the machines, held up or overruled by the checks. */
export function withChecks(verdict: Verdict, states: readonly CheckState[]): Verdict {
  const bad = states.find((state) => state.bad !== undefined);
  if (bad) return { ...verdict, verdict: "unhealthy", why: `${nameOf(bad.check)}: ${bad.bad}` };
  if (verdict.verdict !== "healthy" || states.length === 0) return verdict;
  const open = states.find(({ good, check }) => good < check.samples);
  if (open) {
    const counted = `${open.good} of ${open.check.samples} good measurements`;
    return { ...verdict, verdict: "wait", why: `${nameOf(open.check)}: ${counted}; last: ${open.last}` };
  }
  const said = states.map(({ check, last }) => `${nameOf(check)}: ${last}`).join("; ");
  return { ...verdict, why: `${verdict.why}; ${said}` };
}

function outside(check: HealthCheck, value: number): string | undefined {
  if ("webhook" in check) return undefined;
  if (check.max !== undefined && value > check.max) return `${value}, at most ${check.max} is healthy`;
  if (check.min !== undefined && value < check.min) return `${value}, at least ${check.min} is healthy`;
  return undefined;
}

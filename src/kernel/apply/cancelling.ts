/** How a job is cancelled: at once, or with a grace for the stages that run after any end. */
import type { Job, Stage } from "#kernel/model/entities.ts";
import type { EventOf } from "#kernel/model/event.ts";
import type { State } from "#kernel/model/state.ts";
import { isStageOver } from "./moves.ts";

/** Stages that run however the ones before them ended, and whose tasks are not known or not begun. */
export const isSpared = (stage: Stage): boolean =>
  stage.shape.after === "end" && !stage.cancelled && (stage.phase === "BLOCKED" || isBeingPlanned(stage));

export const isBeingPlanned = (stage: Stage): boolean => stage.phase === "READY" && !stage.planned;

/** The level from which the log may say that stages are spared. */
const graceLevel = 3;

export function cancelSoftly(
  state: State,
  job: Job,
  { phase, reason, graceMs }: { phase: "CANCELLED" | "FAILED"; reason: string; graceMs?: number | undefined },
  nowMs: number,
): EventOf<"job-cancelling"> {
  const cancelling = { kind: "job-cancelling", job: job.no, phase, reason, at: nowMs } as const;
  // A job that waits for its lock has done nothing that would have to be cleaned up.
  const isPlain = job.phase === "WAITING" || state.featureLevel < graceLevel || !job.stages.some(isSpared);
  const forMs = graceMs ?? job.cancelGraceMs ?? state.limits.cancelGraceMs;
  const graceUntilMs = Math.min(nowMs + forMs, job.deadlineAtMs);
  return isPlain || graceUntilMs <= nowMs ? cancelling : { ...cancelling, graceUntilMs };
}

/** When something of a live job is due: its deadline, the end of its grace, or of the wait for someone to come back. */
export function jobDueAtMs({ deadlineAtMs, cancelled, graceUntilMs, audience }: Job): number {
  if (cancelled) return graceUntilMs === 0 ? Number.POSITIVE_INFINITY : graceUntilMs;
  return Math.min(deadlineAtMs, audience?.abandonedAtMs || deadlineAtMs);
}

/** Spared stages of a job whose grace goes on; for people who ask why it has not ended. */
export const sparedIn = (job: Job): readonly Stage[] =>
  job.graceUntilMs === 0 ? [] : job.stages.filter((stage) => !isStageOver(stage) && !stage.cancelled);

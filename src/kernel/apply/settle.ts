/**
 * Consequences that need no command: a stage whose needs have ended becomes ready or is skipped, a stage whose tasks
 * have ended ends, a job whose stages have ended ends, a free lock is passed on. Each step is decided from the current
 * state, so no step has to be planned ahead, and it belongs to the same batch as the command that caused it.
 */
import type { Job, Stage } from "#kernel/model/entities.ts";
import type { Event } from "#kernel/model/event.ts";
import type { JobPhase, Result, StagePhase } from "#kernel/model/model.ts";
import { isJobOver, isStageOver } from "./moves.ts";
import { hasManifest } from "./manifest.ts";
import { displacements } from "./settle-locks.ts";
import type { State } from "#kernel/model/state.ts";
import { failFastOf, mayFailOf } from "#kernel/model/stage-rules.ts";

export function settleStage(state: State, stage: Stage, nowMs: number): readonly Event[] {
  const { job } = stage;
  if (isStageOver(stage) || isJobOver(job)) return [];
  switch (stage.phase) {
    case "BLOCKED":
      return settleBlocked(state, stage, nowMs);
    case "READY":
      return settleReady(state, stage, nowMs);
    default:
      return settleRunning(state, stage, nowMs);
  }
}

function settleBlocked(state: State, stage: Stage, nowMs: number): readonly Event[] {
  const { job, shape } = stage;
  if (stage.cancelled) return [ended(stage, stage.cancelled, stage.reason, nowMs)];
  if (stage.waiting > 0 || job.phase === "WAITING") return [];
  const unmet = shape.after === "success" ? firstUnmet(stage) : undefined;
  if (unmet !== undefined) {
    const need = job.stages[unmet] as Stage;
    return [ended(stage, "SKIPPED", `${need.shape.name} ${need.phase}`, nowMs)];
  }
  if (shape.lock && stage.lockState === "none")
    return [
      { kind: "lock-queued", job: job.no, stage: stage.index, at: nowMs },
      ...displacements(state, job.tenant.name, shape.lock, nowMs),
    ];
  if (stage.lockState === "queued") return [];
  const ready: Event = shape.plan
    ? { kind: "stage-ready", job: job.no, stage: stage.index, planTask: state.nextTask, at: nowMs }
    : { kind: "stage-ready", job: job.no, stage: stage.index, at: nowMs };
  if (shape.plan || (!job.reuse && !stage.kept)) return [ready];
  return [
    ready,
    ...reusable(
      stage,
      stage.tasks.map(({ no, plan }) => ({ no, ...plan })),
      nowMs,
    ),
  ];
}

function firstUnmet({ job, shape: { needs } }: Stage): number | undefined {
  for (const need of needs) if (!isMet(job.stages[need] as Stage)) return need;
  return undefined;
}

const isMet = (need: Stage): boolean => need.phase === "COMPLETED" || (need.phase === "FAILED" && mayFailOf(need));

function settleReady(state: State, stage: Stage, nowMs: number): readonly Event[] {
  const { planning } = stage;
  if (stage.planned) return settlePlanned(state, stage, nowMs);
  if (stage.cancelled && planning?.phase === "CANCELLED") return [ended(stage, stage.cancelled, stage.reason, nowMs)];
  if (planning?.phase === "FAILED")
    return [ended(stage, "FAILED", `planning failed: ${planning.last?.message ?? ""}`, nowMs)];
  return [];
}

/** The stage has been planned, and its plan names a lock that it does not hold yet. */
function settlePlanned(state: State, stage: Stage, nowMs: number): readonly Event[] {
  const { job, index } = stage;
  if (stage.cancelled) return stage.open === 0 ? [ended(stage, stage.cancelled, stage.reason, nowMs)] : [];
  // A lock of an earlier generation is freed when nothing of that can be running any more.
  if (stage.lockState === "held")
    return stage.claims === 0 ? [{ kind: "lock-freed", job: job.no, stage: index, at: nowMs }] : [];
  if (stage.lockState === "queued" || !stage.lock) return [];
  return [
    { kind: "lock-queued", job: job.no, stage: index, at: nowMs },
    ...displacements(state, job.tenant.name, stage.lock, nowMs),
  ];
}

function settleRunning(state: State, stage: Stage, nowMs: number): readonly Event[] {
  const { job } = stage;
  // K5: counted, not scanned; a stage is complete only when no task is open and none has failed.
  if (stage.open === 0) {
    // Consumers read the results from the manifest. A cancelled job has consumers only while its grace for cleaning up
    // lasts; it ends by its deadline (K9).
    const isWanted = !job.cancelled || job.graceUntilMs > 0;
    if (hasManifest(stage) && isWanted && stage.manifest?.digest === undefined)
      return stage.manifest?.no ? [] : [manifestDue(state, stage, nowMs)];
    if (stage.cancelled) return endedBadly(stage, stage.cancelled, stage.reason, nowMs);
    if (stage.failed > 0) return endedBadly(stage, "FAILED", `${stage.failed} of ${stage.size} failed`, nowMs);
    const displaced = stage.size - stage.done;
    if (displaced > 0) return endedBadly(stage, "CANCELLED", displacedReason(displaced, stage), nowMs);
    return [ended(stage, "COMPLETED", "", nowMs)];
  }
  if (stage.failed > 0 && failFastOf(stage) && !stage.cancelled)
    return [
      {
        kind: "stage-cancelling",
        job: job.no,
        stage: stage.index,
        phase: "FAILED",
        reason: `${stage.failed} of ${stage.size} failed`,
        at: nowMs,
      },
    ];
  return [];
}

/** Stages that have run on while a lost result of this one was to be made again will never get it. */
function endedBadly(stage: Stage, phase: "FAILED" | "CANCELLED", reason: string, at: number): readonly Event[] {
  const { job, index, shape } = stage;
  const end = ended(stage, phase, reason, at);
  if (phase === "FAILED" && mayFailOf(stage)) return [end];
  const orphans = job.stages.filter(
    (next) =>
      next.phase === "RUNNING" && !next.cancelled && next.shape.after === "success" && next.shape.needs.includes(index),
  );
  const why = `${shape.name} ${phase}`;
  return [
    end,
    ...orphans.map((next): Event => ({
      kind: "stage-cancelling",
      job: job.no,
      stage: next.index,
      phase: "CANCELLED",
      reason: why,
      at,
    })),
  ];
}

/** Nothing else cancels single tasks of a stage. */
const displacedReason = (displaced: number, { size }: Stage): string =>
  `${displaced} of ${size} made way for newer holders of their locks`;

/** Tasks whose result can be reused from an earlier job or from the previous generation: same stage, key and spec. */
export function reusable(
  stage: Stage,
  tasks: readonly { readonly no: number; readonly key: string; readonly spec: string }[],
  nowMs: number,
): Event[] {
  const { reuse } = stage.job;
  if (!reuse && !stage.kept) return [];
  const known = new Map<string, { readonly spec: string; readonly result: Result }>();
  for (const one of reuse ?? []) if (one.stage === stage.shape.name) known.set(one.key, one);
  for (const [key, one] of stage.kept ?? []) known.set(key, one);
  return tasks.flatMap(({ no, key, spec }): Event[] => {
    const one = known.get(key);
    return one && one.spec === spec ? [{ kind: "reused", task: no, result: one.result, at: nowMs }] : [];
  });
}

export function settleJob(job: Job, nowMs: number): readonly Event[] {
  if (isJobOver(job) || job.stagesOpen > 0) return [];
  let failed: Stage | undefined;
  let cancelled: Stage | undefined;
  for (const stage of job.stages) {
    if (stage.phase === "FAILED" && !mayFailOf(stage)) failed ??= stage;
    if (stage.phase === "CANCELLED") cancelled ??= stage;
  }
  const phase: JobPhase = job.cancelled ?? (failed ? "FAILED" : cancelled ? "CANCELLED" : "SUCCEEDED");
  // A job succeeds only after its results are published, so that a client that waited for the job can use them. Its
  // deadline is not extended for that.
  if (phase === "SUCCEEDED" && job.outbox) return [];
  const culprit = failed ?? cancelled;
  const reason = job.cancelled ? job.reason : culprit ? `${culprit.shape.name}: ${culprit.reason}` : "";
  return [{ kind: "job-ended", job: job.no, phase, reason, at: nowMs }];
}

const manifestDue = (state: State, stage: Stage, at: number): Event => ({
  kind: "manifest-due",
  job: stage.job.no,
  stage: stage.index,
  no: state.nextTask,
  at,
});

const ended = (stage: Stage, phase: StagePhase, reason: string, at: number): Event => ({
  kind: "stage-ended",
  job: stage.job.no,
  stage: stage.index,
  phase,
  reason,
  at,
});

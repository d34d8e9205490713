/**
 * Planning is claimed work: the executor that holds the claim says what the stage's tasks are, once per generation
 * (K5).
 */
import type { CommandOf } from "#kernel/model/command.ts";
import { isPlainTemplate } from "#kernel/apply/job.ts";
import { findClaim, wasCancelled } from "./claim.ts";
import { accept, type Decision, reject } from "./decision.ts";
import type { Stage, Task } from "#kernel/model/entities.ts";
import type { Event, EventOf } from "#kernel/model/event.ts";
import type { Plan } from "#kernel/model/model.ts";
import { isJobOver } from "#kernel/apply/moves.ts";
import { noMemoryForMore, noMemoryForPlan } from "#kernel/memory/free-memory.ts";
import { reusable } from "#kernel/apply/settle.ts";
import type { State } from "#kernel/model/state.ts";
import { wrongPlanReferences, wrongSignalReference } from "#kernel/model/text-reference.ts";
import { bytesOfSignal } from "#kernel/memory/weigh.ts";
import { newestFeatures, retriesByReason, taskLocks, tooNew } from "./feature.ts";
import {
  within,
  wrongDecides,
  wrongList,
  wrongTaskLock,
  wrongTasks,
  wrongText,
  wrongTexts,
  wrongWhole,
} from "./validate.ts";
import { visibleJob } from "#kernel/read/visible.ts";
import { countTasks, listedIn, placedTasks, repeatsKey, setsOf } from "#kernel/model/task-set.ts";

type TasksPlan = Extract<Plan, { kind: "tasks" }>;

export function decideRecordPlan(state: State, command: CommandOf<"record-plan">, nowMs: number): Decision {
  const wrong =
    wrongPlanned(state, command.plan) ?? (command.textsKept ? undefined : wrongPlanReferences(command.plan));
  if (wrong) return reject(wrong);
  const found = findClaim(state, command);
  if (!found.claim) {
    const { task } = found;
    // The first recorded plan wins; later planners get that plan as their answer.
    if (task && task === task.stage.planning && task.phase === "SUCCEEDED")
      return accept({ recorded: task.resultToken === command.token, plan: recordedKind(task.stage) });
    if (task?.phase === "WAITING" && task.resultToken === command.token)
      return accept({ recorded: true, plan: "wait" });
    if (task && wasCancelled(task, command)) return accept({ recorded: false, plan: command.plan.kind });
    return reject(found.why);
  }
  const { task } = found.claim;
  const { stage } = task;
  if (task !== stage.planning)
    return reject({ kind: "invalid", path: "task", why: "the task is not planning, commit a result" });
  if (task.phase === "CANCELLING")
    return accept({ recorded: false, plan: command.plan.kind }, [cancelled(task, command.token, nowMs)]);
  const wrongLock = wrongLockOf(stage, command.plan);
  if (wrongLock) return reject(wrongLock);
  const full = noMemoryForPlan(state, stage.job, command.plan);
  if (full) return reject(full);
  return accept({ recorded: true, plan: command.plan.kind }, planEvents(state, task, command, nowMs));
}

function planEvents(state: State, task: Task, command: CommandOf<"record-plan">, nowMs: number): Event[] {
  const { stage } = task;
  const { plan, token } = command;
  const base = { job: stage.job.no, stage: stage.index, at: nowMs };
  switch (plan.kind) {
    case "tasks": {
      const firstTask = state.nextTask;
      const planned = placedTasks(plan).map(({ place, key, spec }) => ({ no: firstTask + place, key, spec }));
      return [
        { kind: "stage-planned", ...base, generation: stage.generation, token, ...recorded(plan), firstTask },
        ...reusable(stage, planned, nowMs),
      ];
    }
    case "skip":
    case "fail":
      return [
        { kind: "plan-closed", task: task.no, token, at: nowMs },
        { kind: "stage-ended", ...base, phase: plan.kind === "skip" ? "SKIPPED" : "FAILED", reason: plan.reason },
      ];
    case "wait": {
      const waiting: Event = {
        kind: "plan-waiting",
        task: task.no,
        token,
        untilMs: nowMs + plan.forMs,
        signals: plan.signals,
        at: nowMs,
      };
      // If the signal arrived while the planner was working, it is called again at once.
      return alreadyCame(stage, plan.signals) ? [waiting, { kind: "plan-woken", task: task.no, at: nowMs }] : [waiting];
    }
  }
}

/** One set is written as it always was, so that any program reads it. */
function recorded({ set, sets = [], decides }: TasksPlan): Pick<EventOf<"stage-planned">, "set" | "sets" | "decides"> {
  const only = set ?? (sets.length === 1 && !decides ? sets[0] : undefined);
  if (only) return { set: only };
  return decides ? { sets, decides } : { sets };
}

/** Whether signals arrived after the planning claim was granted: the planner has not seen those. */
function alreadyCame(stage: Stage, names: readonly string[]): boolean {
  const { signals = [], seen = 0 } = stage.gate ?? {};
  return signals.slice(seen).some(({ name }) => names.includes(name));
}

function wrongPlanned(state: State, plan: Plan): ReturnType<typeof wrongText> {
  const { limits } = state;
  switch (plan?.kind) {
    case "tasks":
      return (
        (plan.sets === undefined ? within("plan.set", wrongTasks(plan.set, limits)) : wrongSets(state, plan)) ??
        (setsOf(plan).every(({ template }) => isPlainTemplate(template))
          ? undefined
          : tooNew(state, "plan.template")) ??
        (setsOf(plan).some(({ array }) => array) ? tooNew(state, "plan.set.array") : undefined) ??
        (setsOf(plan).some(({ template }) => template.lock)
          ? tooNew(state, "plan.template.lock", taskLocks)
          : undefined) ??
        (setsOf(plan).some(({ template }) => template.retries)
          ? tooNew(state, "plan.template.retries", retriesByReason)
          : undefined)
      );
    case "skip":
    case "fail":
      return wrongText("plan.reason", plan.reason, limits.messageLengthMax);
    case "wait":
      return (
        wrongWhole("plan.forMs", plan.forMs, 1, limits.durationMsMax) ??
        wrongTexts("plan.signals", plan.signals, limits)
      );
    default:
      return { kind: "invalid", path: "plan.kind", why: "must be one of tasks, skip, fail, wait" };
  }
}

function wrongSets(state: State, plan: TasksPlan): ReturnType<typeof wrongText> {
  const { limits } = state;
  const { set, sets = [], decides } = plan;
  const wrong = wrongList("plan.sets", sets, limits.setsMax);
  if (wrong) return wrong;
  if (set !== undefined || sets.length === 0)
    return { kind: "invalid", path: "plan.sets", why: "must have at least one set, and no other beside them" };
  for (const [i, one] of sets.entries()) {
    const wrongSet = within(`plan.sets[${i}]`, wrongTasks(one, limits));
    if (wrongSet) return wrongSet;
  }
  const listed = sets.reduce((sum, one) => sum + listedIn(one).length, 0);
  if (listed > limits.tasksPerStageMax)
    return { kind: "limit", what: "plan.sets", limit: limits.tasksPerStageMax, got: listed };
  const count = countTasks(plan) - listed;
  if (count > limits.arrayTasksMax)
    return { kind: "limit", what: "arrays of plan.sets", limit: limits.arrayTasksMax, got: count };
  if (repeatsKey(sets)) return { kind: "invalid", path: "plan.sets", why: "must not repeat a key" };
  return (
    (decides === undefined ? undefined : within("plan.decides", wrongDecides(decides, limits))) ??
    (sets.length > 1 || decides || count > 0 ? tooNew(state, "plan.sets") : undefined)
  );
}

/** A stage takes one lock. Waiting for one that its own job holds would never end. */
function wrongLockOf(stage: Stage, plan: Plan): ReturnType<typeof wrongText> {
  if (plan.kind !== "tasks") return undefined;
  const lock = plan.decides?.lock;
  for (const set of setsOf(plan)) {
    const wrong = wrongTaskLock(set, [stage.job.lock, stage.shape.lock, lock]);
    if (wrong) return within("plan.set", wrong);
  }
  if (!lock) return undefined;
  if (stage.shape.lock) return { kind: "invalid", path: "plan.decides.lock", why: "the stage's spec has a lock" };
  if (stage.job.lock?.name !== lock.name) return undefined;
  return { kind: "invalid", path: "plan.decides.lock.name", why: "must not be the lock of the job itself" };
}

const recordedKind = (stage: Stage): Plan["kind"] =>
  stage.template ? "tasks" : stage.phase === "SKIPPED" ? "skip" : "fail";

const cancelled = (task: Task, token: number, nowMs: number): Event => ({
  kind: "attempt-ended",
  task: task.no,
  token,
  outcome: "cancelled",
  reason: "cancelled",
  message: "",
  next: { do: "cancel" },
  at: nowMs,
});

export function decideSignal(state: State, command: CommandOf<"signal">, nowMs: number): Decision {
  const { signal } = command;
  const { limits } = state;
  const wrong =
    wrongWhole("stage", command.stage, 0, limits.stagesMax) ??
    wrongText("signal.id", signal?.id, limits.nameLengthMax, 1) ??
    wrongText("signal.name", signal.name, limits.nameLengthMax, 1) ??
    wrongText("signal.payload", signal.payload, limits.specBytesMax) ??
    (signal.by === undefined ? undefined : wrongText("signal.by", signal.by, limits.nameLengthMax)) ??
    (command.textsKept ? undefined : wrongSignalReference(signal));
  if (wrong) return reject(wrong);
  const { id, name, payload } = signal;
  const isKnown = signal.by !== undefined && state.featureLevel >= newestFeatures;
  const by = isKnown ? { by: signal.by } : {};
  const job = visibleJob(state, command);
  if (!job) return reject({ kind: "job-unknown", job: command.job });
  const stage = job.stages[command.stage];
  if (!stage) return reject({ kind: "stage-unknown", job: job.no, stage: command.stage });
  if (stage.gate?.signals.some((known) => known.id === id)) return accept({ recorded: true });
  if (isJobOver(job)) return reject({ kind: "job-ended", job: job.no, phase: job.phase });
  const { signalsPerStageMax } = limits;
  const count = (stage.gate?.signals.length ?? 0) + 1;
  if (count > signalsPerStageMax)
    return reject({ kind: "limit", what: "signals", limit: signalsPerStageMax, got: count });
  const full = noMemoryForMore(state, job, bytesOfSignal(signal), "new");
  if (full) return reject(full);
  const events: Event[] = [
    // Copied field by field: extra fields of the caller's signal must not get into the log.
    { kind: "signalled", job: job.no, stage: stage.index, id, name, payload, ...by, at: nowMs },
  ];
  const { planning } = stage;
  if (planning?.phase === "WAITING" && stage.gate?.waitsFor.includes(name))
    events.push({ kind: "plan-woken", task: planning.no, at: nowMs });
  return accept({ recorded: true }, events);
}

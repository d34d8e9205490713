/**
 * The bytes of a committed result are lost: the task runs again, in the next generation.
 *
 * K5 Stages that are being planned from the result are planned again. Those that run go on: their tasks read what was
 *    there, or fail for the input and ask again. When the task commits other blobs than before, and only then, they are
 *    planned again as well: no stage mixes two generations of its inputs.
 */
import type { CommandOf } from "#kernel/model/command.ts";
import type { Stage, Task } from "#kernel/model/entities.ts";
import type { Event } from "#kernel/model/event.ts";
import type { Result } from "#kernel/model/model.ts";
import { hasManifest } from "#kernel/apply/manifest.ts";
import { isJobOver, isStageOver } from "#kernel/apply/moves.ts";
import type { State } from "#kernel/model/state.ts";
import { visibleTask } from "#kernel/read/visible.ts";
import { accept, type Decision, reject } from "./decision.ts";
import { wrongText } from "./validate.ts";

export function decideInvalidate(state: State, command: CommandOf<"invalidate">, nowMs: number): Decision {
  const task = visibleTask(state, command);
  if (!task) return reject({ kind: "task-unknown", task: command.task });
  const wrong = wrongText("reason", command.reason, state.limits.messageLengthMax);
  if (wrong) return reject(wrong);
  if (task.generation === command.generation + 1) return accept({ generation: task.generation });
  if (task.generation !== command.generation)
    return reject({
      kind: "generation-stale",
      task: task.no,
      offered: command.generation,
      current: task.generation,
    });
  const { stage } = task;
  const { job } = stage;
  if (isJobOver(job) || job.cancelled || stage.cancelled || stage.phase === "FAILED")
    return reject({ kind: "job-ended", job: job.no, phase: job.phase });
  if (task.phase !== "SUCCEEDED" || task === stage.planning)
    return reject({ kind: "task-phase", task: task.no, phase: task.phase, wanted: "SUCCEEDED, to be invalidated" });
  if (isStageOver(stage) && stage.lock)
    return reject({ kind: "invalid", path: "task", why: "its stage has released its lock" });
  const events: Event[] = [];
  if (isStageOver(stage)) {
    events.push(reopened(stage, "RUNNING", 0, nowMs));
    // A manifest names all results at once, and is void until it is written again.
    const goOn = !hasManifest(stage);
    events.push(...blocked(state, stage, ({ phase }) => phase === "READY" || !goOn, nowMs));
  }
  events.push({
    kind: "invalidated",
    task: task.no,
    generation: task.generation + 1,
    reason: command.reason,
    at: nowMs,
  });
  return accept({ generation: task.generation + 1 }, events);
}

/** Stages that have run on while a result of theirs was made again, and it came out with other blobs. */
export function consumersReopened(state: State, task: Task, result: Result, nowMs: number): readonly Event[] {
  const { stage, plan } = task;
  const before = stage.kept?.get(plan.key)?.result;
  if (task.generation === 1 || (before && isSame(before, result))) return [];
  return blocked(state, stage, ({ phase }) => phase === "RUNNING", nowMs);
}

/** A result without blobs is what it says. */
const isSame = (a: Result, b: Result): boolean =>
  a.digests.length === b.digests.length &&
  a.digests.every((digest, i) => digest === b.digests[i]) &&
  (a.digests.length > 0 || a.payload === b.payload);

/**
 * A stage that is blocked may be planned otherwise, without a task that commits: so whatever has run on while results
 * of it were made again is blocked with it, and so on.
 */
function blocked(state: State, stage: Stage, isMeant: (next: Stage) => boolean, nowMs: number): readonly Event[] {
  const { stages } = stage.job;
  const consumersOf = ({ index }: Stage): readonly Stage[] =>
    stages.filter(({ phase, shape }) => (phase === "READY" || phase === "RUNNING") && shape.needs.includes(index));
  const found = new Set(consumersOf(stage).filter(isMeant));
  for (const next of found) for (const further of consumersOf(next)) found.add(further); // those too are looked at
  let firstTask = state.nextTask;
  return [...found].map((next) => {
    const event = reopened(next, "BLOCKED", firstTask, nowMs);
    firstTask += next.size;
    return event;
  });
}

const reopened = (stage: Stage, phase: "RUNNING" | "BLOCKED", firstTask: number, at: number): Event => ({
  kind: "stage-reopened",
  job: stage.job.no,
  stage: stage.index,
  generation: stage.generation + 1,
  phase,
  firstTask,
  at,
});

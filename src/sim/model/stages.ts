/** What events about stages change in the model: how they are planned, run, cancelled, ended and opened again. */
import type { TaskTemplate } from "#kernel/model/model.ts";
import { endClaim } from "./tasks.ts";
import { isOver, liveClaims, newTask, type Folds, type ModelStage } from "./model.ts";
import { setsOf } from "#kernel/model/task-set.ts";

export const stageFolds = {
  "stage-ready"(model, event) {
    const stage = model.stage(event.job, event.stage);
    if (!stage) return;
    if (event.planTask === undefined) return run(stage);
    stage.phase = "READY";
    const { plan } = stage.spec;
    if (!plan) return;
    const template: TaskTemplate = {
      ...planDefaults,
      kind: plan.kind,
      requires: plan.requires,
      leaseMs: plan.leaseMs,
      attemptsMax: plan.attemptsMax,
    };
    stage.planning = newTask(stage, event.planTask, "plan", template, true);
    stage.planning.standing = "ready";
    model.tasks.set(event.planTask, stage.planning);
  },
  "stage-planned"(model, event) {
    const stage = model.stage(event.job, event.stage);
    if (!stage) return;
    stage.plannedIn.add(event.generation);
    endPlanning(stage, event.token);
    model.addTasks(stage, setsOf(event), event.firstTask);
    const { lock, ...decides } = event.decides ?? {};
    stage.spec = { ...stage.spec, ...decides };
    if (lock && stage.lock === "held" && stage.spec.lock?.name !== lock.name) stage.wants = lock;
    else if (lock) stage.spec = { ...stage.spec, lock };
    if (!lock || (stage.lock === "held" && !stage.wants)) run(stage);
  },
  "plan-closed"(model, event) {
    const stage = model.tasks.get(event.task)?.stage;
    stage?.plannedIn.add(stage.generation);
    if (stage) endPlanning(stage, event.token);
  },
  signalled: (model, event) => void model.stage(event.job, event.stage)?.signals.add(event.id),
  "stage-cancelling"(model, event) {
    const stage = model.stage(event.job, event.stage);
    if (stage) cancelStage(stage);
  },
  "manifest-due"(model, event) {
    const stage = model.stage(event.job, event.stage);
    if (stage) stage.manifestDue = event.no;
  },
  "manifest-written"(model, event) {
    const stage = model.stage(event.job, event.stage);
    if (!stage) return;
    stage.manifest = event.digest;
    stage.manifestDue = undefined;
  },
  "stage-ended"(model, event) {
    const stage = model.stage(event.job, event.stage);
    if (!stage) return;
    stage.phase = event.phase;
    for (const task of stage.tasks) task.standing = "over";
  },
  "stage-reopened"(model, event) {
    const stage = model.stage(event.job, event.stage);
    if (!stage) return;
    // Some of its tasks run again: the plan stays.
    if (event.phase === "RUNNING" && stage.plannedIn.has(stage.generation)) stage.plannedIn.add(event.generation);
    stage.generation = event.generation;
    stage.manifest = undefined;
    stage.manifestDue = undefined;
    stage.phase = event.phase;
    if (event.phase === "RUNNING") return;
    for (const task of [...stage.tasks, ...(stage.planning ? [stage.planning] : [])]) {
      task.standing = "over";
      for (const claim of task.claims.values()) claim.live = false;
    }
    stage.planning = undefined;
    const { lock } = stage.spec;
    stage.spec = stage.lock === "held" && lock ? { ...stage.submitted, lock } : stage.submitted;
    if (stage.lock === "queued") stage.lock = "none";
    stage.wants = undefined;
    const { tasks } = stage.spec;
    if (tasks) model.addTasks(stage, [tasks], event.firstTask);
    else stage.tasks = [];
  },
} satisfies Partial<Folds>;

const planDefaults = {
  retryOn: "infrastructure",
  backoffMs: 0,
  backoffMsMax: 0,
  queueMs: 0,
  attemptMs: 0,
  effects: "pure",
  speculate: false,
  graceMs: 0,
} as const;

/** The kernel decides which of a running stage's tasks are queued (parallelMax): the model allows all of them. */
export function run(stage: ModelStage): void {
  stage.phase = "RUNNING";
  for (const task of stage.tasks) if (task.standing === "held") task.standing = "ready";
}

function endPlanning(stage: ModelStage, token: number): void {
  if (!stage.planning) return;
  endClaim(stage.planning, token, true);
  stage.planning.results.set(stage.generation, token);
  stage.planning.standing = "over";
}

/** Runs after any end, and its tasks are not known or not begun: a cancellation with a grace spares it. */
export const isSpared = ({ spec, phase, cancelled, plannedIn, generation }: ModelStage): boolean =>
  spec.after === "end" && !cancelled && (phase === "BLOCKED" || (phase === "READY" && !plannedIn.has(generation)));

/** Its planner is asked again, and an answer of the one before no longer counts. */
export function planAgain({ planning }: ModelStage): void {
  if (!planning || planning.standing === "over") return;
  for (const claim of planning.claims.values()) {
    if (claim.live) planning.attempts -= 1;
    claim.live = false;
  }
  planning.standing = "ready";
}

export function cancelStage(stage: ModelStage): void {
  if (isOver(stage.phase) || stage.cancelled) return;
  stage.cancelled = true;
  for (const task of [...stage.tasks, ...(stage.planning ? [stage.planning] : [])]) {
    if (task.standing === "over") continue;
    task.standing = liveClaims(task).length > 0 ? "cancelling" : "over";
  }
}

/** What events about jobs change in the model: subscribers, keys, locks and how jobs end. */
import type { JobPhase } from "#kernel/model/model.ts";
import type { LockUser } from "#kernel/model/event.ts";
import { cancelStage, isSpared, planAgain, run } from "./stages.ts";
import { newStage, type Folds, type ModelJob, type ShardModel } from "./model.ts";
import { sizeOf } from "#kernel/model/task-set.ts";

export const jobFolds = {
  "job-submitted"(model, event) {
    const job: ModelJob = {
      no: event.job,
      tenant: event.tenant,
      door: event.door,
      payloadHash: event.payloadHash,
      lock: event.lock,
      stages: [],
      submitted: event,
      subscribers: new Set(event.subscriber === undefined ? [] : [event.subscriber]),
      left: new Set(),
      priority: event.priority,
      phase: event.lock ? "WAITING" : "RUNNING",
      phases: [{ seq: model.seq + 1, phase: event.lock ? "WAITING" : "RUNNING" }],
      lockState: "none",
      cancelled: false,
      graceUntilMs: 0,
      forgotten: false,
    };
    let firstTask = event.firstTask;
    for (const [index, spec] of event.stages.entries()) {
      const stage = newStage(job, index, spec);
      job.stages.push(stage);
      if (spec.tasks) model.addTasks(stage, [spec.tasks], firstTask);
      firstTask += sizeOf(spec.tasks);
    }
    if (event.series) model.series.set(`${event.tenant} ${event.door} ${event.series.name}`, event.series.number);
    model.jobs.set(job.no, job);
    model.liveJobs += 1;
    bindKey(model, event);
  },
  "job-joined"(model, event) {
    const job = model.jobs.get(event.job);
    if (job && event.subscriber !== undefined) job.subscribers.add(event.subscriber);
    if (job) job.priority = event.priority;
    bindKey(model, event);
  },
  "job-left"(model, event) {
    const job = model.jobs.get(event.job);
    job?.subscribers.delete(event.subscriber);
    job?.left.add(event.subscriber);
  },
  "lock-queued": (model, event) => setLock(model, event, "queued"),
  "lock-granted"(model, event) {
    setLock(model, event, "held");
    if (event.task !== undefined) return;
    const job = model.jobs.get(event.job);
    if (event.stage === -1 && job?.phase === "WAITING") setPhase(model, job, "RUNNING");
    const stage = job?.stages[event.stage];
    if (stage?.phase === "READY" && !stage.cancelled) run(stage);
  },
  "lock-freed"(model, event) {
    setLock(model, event, "none");
    if (event.task !== undefined) return;
    const stage = model.stage(event.job, event.stage);
    if (stage?.wants) stage.spec = { ...stage.spec, lock: stage.wants };
    if (stage) stage.wants = undefined;
  },
  "job-cancelling"(model, event) {
    const job = model.jobs.get(event.job);
    if (!job) return;
    setPhase(model, job, "CANCELLING");
    job.cancelled = true;
    job.graceUntilMs = event.graceUntilMs ?? 0;
    for (const stage of job.stages)
      if (event.graceUntilMs !== undefined && isSpared(stage)) planAgain(stage);
      else cancelStage(stage);
  },
  "job-ended"(model, event) {
    const job = model.jobs.get(event.job);
    if (!job) return;
    setPhase(model, job, event.phase);
    for (const [i, notice] of (job.submitted.notify ?? []).entries()) model.owed.set(`${job.no}/${i}`, notice);
    model.liveJobs -= 1;
  },
  notified: (model, event) => void model.owed.delete(`${event.job}/${event.notice}`),
  forgotten(model, event) {
    for (const no of event.jobs) {
      const job = model.jobs.get(no);
      if (job) job.forgotten = true;
    }
  },
} satisfies Partial<Folds>;

function setPhase(model: ShardModel, job: ModelJob, phase: JobPhase): void {
  job.phase = phase;
  job.phases.push({ seq: model.seq + 1, phase });
}

function setLock(model: ShardModel, at: LockUser, to: ModelJob["lockState"]): void {
  if (at.task !== undefined) {
    const task = model.tasks.get(at.task);
    if (task) task.lock = to;
    return;
  }
  const job = model.jobs.get(at.job);
  const stage = job?.stages[at.stage];
  if (at.stage === -1 && job) job.lockState = to;
  else if (stage) stage.lock = to;
}

function bindKey(
  model: ShardModel,
  event: { readonly key?: string; readonly job: number; readonly payloadHash: string; readonly keyUntilMs?: number },
): void {
  if (event.key === undefined) return;
  const { job, payloadHash, keyUntilMs } = event;
  model.keys.set(event.key, { job, payloadHash, untilMs: keyUntilMs ?? 0 });
  const bound = model.bindings.get(event.key) ?? new Map<number, string>();
  model.bindings.set(event.key, bound.set(job, payloadHash));
}

/** What events about tasks change in the model: attempts, results and publications. */
import type { EventOf } from "#kernel/model/event.ts";
import { liveClaims, type Folds, type ModelPublication, type ModelTask, type ShardModel } from "./model.ts";

export const taskFolds = {
  "plan-waiting"(model, event) {
    const task = model.tasks.get(event.task);
    if (!task) return;
    endClaim(task, event.token, true);
    task.attempts -= 1;
    task.standing = "waiting";
  },
  "plan-woken": (model, event) => setReady(model, event.task),
  requeued: (model, event) => setReady(model, event.task),
  claimed(model, event) {
    const { token, executor, leaseMs, started } = event;
    model.tokenMax = Math.max(model.tokenMax, token);
    const task = model.tasks.get(event.task);
    if (!task) return;
    const checkpoints = new Set([task.checkpoint]);
    task.claims.set(token, { token, executor, leaseMs, started, checkpoints, live: true, gone: false });
    task.attempts += 1;
    task.standing = "claimed";
  },
  started(model, event) {
    const claim = model.claim(event.task, event.token);
    if (claim) claim.started = true;
  },
  committed(model, event) {
    const task = model.tasks.get(event.task);
    if (!task) return;
    task.results.set(task.generation, event.token);
    task.blobs.set(task.generation, event.result.digests.join(" ") || event.result.payload);
    const { job, no, generation } = task;
    const { publish } = event.result;
    if (publish !== undefined)
      model.publications.set(`${no}/${generation}`, { job, task: no, generation, publish, standing: "waiting" });
    endClaim(task, event.token, true);
    // The second attempt's token is void, whether or not the log says so later.
    for (const claim of task.claims.values()) claim.live = false;
    task.standing = "over";
  },
  published: (model, event) => setPublication(model, `${event.task}/${event.generation}`, "published"),
  "publishing-given-up"(model, event) {
    for (const [name, { job }] of model.publications) if (job.no === event.job) setPublication(model, name, "given up");
  },
  reused(model, event) {
    const task = model.tasks.get(event.task);
    if (!task) return;
    task.results.set(task.generation, 0);
    task.standing = "over";
  },
  "attempt-ended"(model, event) {
    const task = model.tasks.get(event.task);
    if (!task) return;
    endClaim(task, event.token, event.outcome !== "timed-out");
    if (event.outcome === "released") task.attempts -= 1;
    if (isLoss(event)) task.losses += 1;
    if (["failed", "expired", "timed-out"].includes(event.outcome))
      task.failures.set(event.reason, (task.failures.get(event.reason) ?? 0) + 1);
    if (event.next.do !== "nothing") task.speculated = false;
    if (event.next.do === "ready") task.standing = "ready";
    if (event.next.do === "fail" || event.next.do === "cancel") task.standing = "over";
    if (event.next.do !== "retry") return;
    task.standing = "retry";
    task.retryAtMs = event.next.atMs;
  },
  checkpointed(model, event) {
    const task = model.tasks.get(event.task);
    if (!task) return;
    task.checkpoint = event.checkpoint.payload;
    for (const claim of task.claims.values()) if (claim.live) claim.checkpoints.add(task.checkpoint);
  },
  "claim-gone"(model, event) {
    const claim = model.claim(event.task, event.token);
    if (claim) claim.gone = true;
  },
  "task-failed"(model, event) {
    const task = model.tasks.get(event.task);
    if (task) task.standing = "over";
  },
  "task-displaced"(model, event) {
    const task = model.tasks.get(event.task);
    if (task) task.displaced = true;
    if (task && task.standing !== "over") task.standing = liveClaims(task).length > 0 ? "cancelling" : "over";
  },
  "rest-failed"(model, event) {
    const first = model.tasks.get(event.array);
    for (const task of first?.stage.tasks ?? [])
      if (task.template === first?.template && task.no >= event.array + event.from) task.standing = "over";
  },
  invalidated(model, event) {
    const task = model.tasks.get(event.task);
    if (!task) return;
    setPublication(model, `${task.no}/${task.generation}`, "void");
    task.stage.manifestDue = undefined;
    task.generation = event.generation;
    task.checkpoint = undefined;
    task.losses = 0;
    task.failures.clear();
    task.attempts = 0;
    task.speculated = false;
    task.standing = "ready";
  },
  speculated(model, event) {
    const task = model.tasks.get(event.task);
    if (task) task.speculated = true;
  },
} satisfies Partial<Folds>;

/** An attempt that was lost to infrastructure. */
export const isLoss = ({ outcome, reason }: Pick<EventOf<"attempt-ended">, "outcome" | "reason">): boolean =>
  (outcome === "failed" || outcome === "expired" || outcome === "timed-out") &&
  (reason === "executor-lost" || reason === "preempted" || reason === "input-lost");

export function endClaim(task: ModelTask, token: number, gone: boolean): void {
  const claim = task.claims.get(token);
  if (!claim) return;
  claim.live = false;
  claim.gone ||= gone;
}

function setPublication(model: ShardModel, name: string, standing: ModelPublication["standing"]): void {
  const one = model.publications.get(name);
  if (one?.standing === "waiting") one.standing = standing;
}

function setReady(model: ShardModel, no: number): void {
  const task = model.tasks.get(no);
  if (task) task.standing = "ready";
}

/** What executors that respect their leases really did at the same time: outside effects and locks. */
import type { Checker, Court } from "./court.ts";
import type { ModelJob, ModelStage, ModelTask } from "#sim/model/model.ts";
import type { Run } from "#sim/actors/runs.ts";

export const oneAtATimeOutside: Checker = {
  invariant: "K2",
  promise: "work with outside effects never runs twice at once",
  ran(court, run) {
    if (run.grant.effects !== "outside") return undefined;
    const other = court.runs
      .running()
      .find((each) => each !== run && each.shard === run.shard && each.grant.task === run.grant.task);
    return other && `${nameOf(run)} began while ${nameOf(other)} runs, since ${other.sinceMs.toFixed(0)}`;
  },
};

export const locksInTheWorld: Checker = {
  invariant: "locks",
  promise: "no more holders of a lock are really at work than its limit",
  ran(court, run) {
    const mine = locksOf(court, run);
    for (const { lock, name, holder } of mine) {
      const holders = new Set<ModelJob | ModelStage | ModelTask>([holder]);
      for (const other of court.runs.running())
        if (other.shard === run.shard && other.grant.effects === "outside")
          for (const theirs of locksOf(court, other)) if (theirs.name === name) holders.add(theirs.holder);
      if (holders.size > lock.limit) return `${nameOf(run)} began as one of ${holders.size} holders of ${name}`;
    }
    return undefined;
  },
};

function locksOf(court: Court, { shard, grant }: Run) {
  const job = court.models[shard]?.jobs.get(grant.job);
  const stage = job?.stages[grant.stage];
  const found = [];
  if (job?.lock) found.push({ lock: job.lock, name: `${job.tenant}/${job.lock.name}`, holder: job });
  if (job && stage?.spec.lock)
    found.push({ lock: stage.spec.lock, name: `${job.tenant}/${stage.spec.lock.name}`, holder: stage });
  const task = court.models[shard]?.tasks.get(grant.task);
  const own = task?.template.lock;
  if (job && task && own) found.push({ lock: own, name: `${job.tenant}/${own.name}`, holder: task });
  return found;
}

const nameOf = ({ shard, grant, life }: Run): string =>
  `${life.name} (shard ${shard}, job ${grant.job}, task ${grant.task}, token ${grant.token})`;

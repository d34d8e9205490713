/** Tasks that failed after their last attempt: logged, so that an operator looks at them. */
import { formatJob, formatTask } from "#base/ids.ts";
import type { Log } from "#edge/log/log.ts";
import type { Task } from "#kernel/model/entities.ts";
import type { Event, EventOf } from "#kernel/model/event.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";

/** The last attempt of a task, if only the limit of attempts prevented another. */
export function isLastAttempt(event: Event, { template }: Task): event is EventOf<"attempt-ended"> {
  if (event.kind !== "attempt-ended" || event.next.do !== "fail") return false;
  const isOwnFailure = event.reason === "user-failure" || event.reason === "timed-out";
  return !isOwnFailure || template.retryOn === "any";
}

export class ExhaustedTasks implements ShardObserver {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  durable({ shard, state }: HostedShard, { events }: SealedBatch): void {
    for (const event of events) {
      const task = event.kind === "attempt-ended" ? state.tasks.get(event.task) : undefined;
      if (!task || !isLastAttempt(event, task)) continue;
      const { job } = task.stage;
      // Not the message: it may contain a command's output.
      this.#log.warn("attempts-exhausted", {
        tenant: job.tenant.name,
        job: formatJob(shard, job.no),
        task: formatTask(shard, task.no),
        kind: task.template.kind,
        reason: event.reason,
        attempts: task.attempts,
      });
    }
  }
}

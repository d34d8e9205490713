/**
 * What happened according to the log, as far as the checks need it. Computed by a few separate rules rather than by the
 * kernel's `apply`: a bug there must not hide itself here.
 */
import { formatJob, formatTask } from "#base/ids.ts";
import type { LoggedEvent } from "./journal-log.ts";
import { countTasks, sizeOf } from "#kernel/model/task-set.ts";

export type JobRecord = {
  readonly jobId: string;
  readonly key: string | undefined;
  readonly tasks: string[];
  readonly endings: string[];
};

export type TaskRecord = {
  readonly taskId: string;
  readonly tokens: number[];
  /** Tokens that may still commit a result. */
  readonly live: Set<number>;
  readonly committed: number[];
  /** Results of this generation. */
  standing: number;
};

export class Record {
  readonly jobs = new Map<string, JobRecord>();
  readonly tasks = new Map<string, TaskRecord>();
  /** What no log may ever contain. */
  readonly broken: string[] = [];
  readonly outcomes = new Map<string, number>();
  readonly #jobByKey = new Map<string, string>();
  takeOvers = 0;
  events = 0;

  add({ shard, event, seq }: LoggedEvent): void {
    this.events += 1;
    const at = `shard ${shard} batch ${seq}`;
    switch (event.kind) {
      case "took-over":
        this.takeOvers += 1;
        break;
      case "job-submitted": {
        const jobId = formatJob(shard, event.job);
        if (this.jobs.has(jobId)) this.broken.push(`${at}: ${jobId} is submitted twice`);
        const known = event.key === undefined ? undefined : this.#jobByKey.get(event.key);
        if (known !== undefined) this.broken.push(`${at}: key ${event.key} is bound to ${known} and ${jobId} (K1)`);
        if (event.key !== undefined) this.#jobByKey.set(event.key, jobId);
        const count = event.stages.reduce((sum, { tasks }) => sum + sizeOf(tasks), 0);
        this.jobs.set(jobId, { jobId, key: event.key, tasks: taskIds(shard, event.firstTask, count), endings: [] });
        break;
      }
      case "stage-planned":
        this.jobs.get(formatJob(shard, event.job))?.tasks.push(...taskIds(shard, event.firstTask, countTasks(event)));
        break;
      case "job-ended":
        this.jobs.get(formatJob(shard, event.job))?.endings.push(`${event.phase} ${event.reason}`.trim());
        break;
      case "claimed": {
        const task = this.#task(shard, event.task);
        task.tokens.push(event.token);
        task.live.add(event.token);
        break;
      }
      case "attempt-ended":
        this.#task(shard, event.task).live.delete(event.token);
        this.outcomes.set(event.outcome, (this.outcomes.get(event.outcome) ?? 0) + 1);
        break;
      case "committed": {
        const task = this.#task(shard, event.task);
        if (!task.live.delete(event.token))
          this.broken.push(`${at}: ${task.taskId} is committed under token ${event.token}, which is not live (K3)`);
        task.committed.push(event.token);
        task.standing += 1;
        if (task.standing > 1) this.broken.push(`${at}: ${task.taskId} has a second result (K6)`);
        break;
      }
      case "invalidated":
        this.#task(shard, event.task).standing = 0;
        break;
      default:
        break;
    }
  }

  #task(shard: number, number: number): TaskRecord {
    const taskId = formatTask(shard, number);
    const known = this.tasks.get(taskId);
    if (known) return known;
    const task = { taskId, tokens: [], live: new Set<number>(), committed: [], standing: 0 };
    this.tasks.set(taskId, task);
    return task;
  }
}

const taskIds = (shard: number, first: number, count: number): string[] =>
  Array.from({ length: count }, (_, i) => formatTask(shard, first + i));

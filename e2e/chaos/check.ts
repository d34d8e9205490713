/**
 * The verdict, from outside: compares the submitters' answers and the executors' records with the log.
 *
 * - every acknowledged job is in the log under its key, and has ended exactly once, with success;
 * - every task of it has one result, committed with a live token (K3, K6);
 * - every commit that was acknowledged to an executor is in the log under its token (K7);
 * - every attempt that ran had been granted, and every result comes from an attempt that ran to its end.
 */
import { setTimeout as pause } from "node:timers/promises";
import { readAttempts, type Attempt, type Attempts } from "./attempts.ts";
import type { Cluster } from "./cluster.ts";
import { JournalLog } from "./journal-log.ts";
import { Record } from "./record.ts";
import type { Acknowledged } from "./traffic.ts";

export type Evidence = {
  readonly record: Record;
  readonly attempts: Attempts;
  readonly acknowledged: readonly Acknowledged[];
};

/** Waits until everything acknowledged has ended, or until the time is up; then reads everything there is. */
export async function gather(
  cluster: Cluster,
  acknowledged: readonly Acknowledged[],
  limitMs: number,
): Promise<Evidence> {
  const record = new Record();
  const log = new JournalLog(cluster, cluster.plan.shards, (told) => record.add(told));
  const untilMs = performance.now() + limitMs;
  for (;;) {
    await log.catchUp();
    const open = acknowledged.some(({ jobId }) => record.jobs.get(jobId)?.endings.length === 0);
    if (!open || performance.now() > untilMs) break;
    await pause(250);
  }
  // An executor writes its last line after the commit has become durable.
  await pause(500);
  return { record, attempts: readAttempts(cluster.attemptsFolder), acknowledged };
}

export function findViolations({ record, attempts, acknowledged }: Evidence): readonly string[] {
  return [
    ...record.broken,
    ...acknowledged.flatMap((each) => jobViolations(each, record)),
    ...attemptViolations(attempts, record),
  ];
}

function jobViolations({ jobId, key, tasks }: Acknowledged, { jobs, tasks: known }: Record): readonly string[] {
  const job = jobs.get(jobId);
  if (!job) return [`${jobId} was acknowledged and is not in the log (K7)`];
  if (!job.key?.includes(key)) return [`${jobId} was acknowledged for key ${key} and is bound to ${job.key} (K1)`];
  const [ending] = job.endings;
  if (ending === undefined) return [`${jobId} was acknowledged and has not ended (K9)`];
  if (job.endings.length > 1) return [`${jobId} ended ${job.endings.length} times: ${job.endings.join("; ")}`];
  if (ending !== "SUCCEEDED") return [`${jobId} ended ${ending}`];
  const without = job.tasks.filter((task) => known.get(task)?.committed.length !== 1);
  return [
    ...(job.tasks.length === tasks ? [] : [`${jobId} has ${job.tasks.length} tasks, not ${tasks}`]),
    ...without.map((task) => `${task} of ${jobId} has ${known.get(task)?.committed.length ?? 0} results`),
  ];
}

function attemptViolations({ all, broken }: Attempts, { tasks }: Record): readonly string[] {
  const violations = [...broken];
  for (const { task, attempt, token, isAcknowledged } of all) {
    const known = tasks.get(task);
    if (!known || (token !== undefined && !known.tokens.includes(token)))
      violations.push(`${task}${attempt} ran, and nobody granted it (K2)`);
    if (isAcknowledged && token !== undefined && !known?.committed.includes(token))
      violations.push(`${task}: the commit of ${attempt} was acknowledged and is not in the log (K7)`);
  }
  const byTask = Map.groupBy(all, ({ task }) => task);
  for (const { taskId, committed } of tasks.values())
    for (const token of committed)
      if (!byTask.get(taskId)?.some((each) => each.hasEnded && (each.token ?? token) === token))
        violations.push(`${taskId} has a result of token ${token}, and no attempt of it ran to its end`);
  return violations;
}

/** Tasks that were started more than once. */
export function rerun({ all }: Attempts): ReadonlyMap<string, readonly Attempt[]> {
  const byTask = Map.groupBy(all, ({ task }) => task);
  return new Map([...byTask].filter(([, each]) => each.length > 1));
}

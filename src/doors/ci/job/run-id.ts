/** A run's id as a number, which actions expect: the job's number and its shard, so that it can be turned back. */
import { formatJob, parseJob } from "#base/ids.ts";

const shardsMax = 65_536;

export function numericRunId(jobId: string): number {
  const ref = parseJob(jobId);
  return ref ? ref.job * shardsMax + ref.shard : 0;
}

export const jobOfRunId = (id: number): string => formatJob(id % shardsMax, Math.floor(id / shardsMax));

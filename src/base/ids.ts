/**
 * Ids contain their shard, so that any node can tell from an id alone which shard to ask. Inside a shard jobs and tasks
 * are plain numbers; outside they are `j<shard>-<n>` and `t<shard>-<n>` in base 36.
 */
export type ShardId = number;
export type JobNo = number;
export type TaskNo = number;

export type JobRef = { readonly shard: ShardId; readonly job: JobNo };
export type TaskRef = { readonly shard: ShardId; readonly task: TaskNo };

export const formatJob = (shard: ShardId, job: JobNo): string => `j${shard.toString(36)}-${job.toString(36)}`;
export const formatTask = (shard: ShardId, task: TaskNo): string => `t${shard.toString(36)}-${task.toString(36)}`;

export function parseJob(text: string): JobRef | undefined {
  const parsed = parse("j", text);
  return parsed && { shard: parsed.shard, job: parsed.number };
}

export function parseTask(text: string): TaskRef | undefined {
  const parsed = parse("t", text);
  return parsed && { shard: parsed.shard, task: parsed.number };
}

const shardMax = 36 ** 4 - 1;

function parse(letter: "j" | "t", text: string): { shard: number; number: number } | undefined {
  const dash = text.indexOf("-");
  const shard = Number.parseInt(text.slice(1, dash), 36);
  const number = Number.parseInt(text.slice(dash + 1), 36);
  if (!(shard <= shardMax && number >= 0 && Number.isSafeInteger(number))) return undefined;
  // Only the canonical spelling is an id: two names for one thing would defeat comparison by string.
  const canonical = letter === "j" ? formatJob(shard, number) : formatTask(shard, number);
  return canonical === text ? { shard, number } : undefined;
}

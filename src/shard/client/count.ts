/** Counts jobs by phase: the shards count what has not ended, history what has. */
import { isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { JobPhase } from "#kernel/model/model.ts";
import type { JobCount, Query } from "#kernel/read/query.ts";
import type { Directory } from "./directory.ts";
import type { JobsFilter } from "./list.ts";

export type JobTotals = {
  /** Phases without jobs are left out. */
  readonly phases: Readonly<Partial<Record<JobPhase, number>>>;
  /** Somewhere there are more jobs than one answer goes through: there may be more. */
  readonly capped: boolean;
  /** Shards that did not answer: their live jobs are not counted. */
  readonly unreachable: readonly ShardId[];
};

type LiveCount = Omit<Extract<Query, { kind: "count" }>, "kind">;
type CountPorts = {
  readonly directory: Directory;
  readonly live: (shard: ShardId, wanted: LiveCount) => Promise<JobCount>;
};

const ended: ReadonlySet<string> = new Set<JobPhase>(["SUCCEEDED", "FAILED", "CANCELLED"]);
const shardsAtOnce = 16;

export async function countJobs(filter: JobsFilter, { directory, live }: CountPorts): Promise<JobTotals> {
  const { phase, ...wanted } = filter;
  const phases = new Map<JobPhase, number>();
  const unreachable: ShardId[] = [];
  let capped = false;
  const add = (counted: { readonly phases: JobCount["phases"]; readonly capped: boolean }): void => {
    for (const { phase: found, jobs } of counted.phases)
      if (phase === undefined || phase === found) phases.set(found, (phases.get(found) ?? 0) + jobs);
    capped ||= counted.capped;
  };
  const ask = async (shard: ShardId): Promise<void> => {
    try {
      add(await live(shard, wanted));
    } catch (error) {
      if (!isFault(error, "unavailable")) throw error;
      unreachable.push(shard);
    }
  };
  const { shards } = await directory.cluster();
  if (phase === undefined || !ended.has(phase))
    for (let from = 0; from < shards; from += shardsAtOnce)
      await Promise.all(Array.from({ length: Math.min(shardsAtOnce, shards - from) }, (_, i) => ask(from + i)));
  if (phase === undefined || ended.has(phase)) add((await directory.history.count(filter)) as JobCount);
  return { phases: Object.fromEntries(phases), capped, unreachable: unreachable.toSorted((a, b) => a - b) };
}

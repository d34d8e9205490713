/** The ledger of effects on a node. */
import type { Clock } from "#base/clock.ts";
import { Effects, effectsTag } from "#effects/effects.ts";
import { EffectsKeeper } from "#effects/keeper.ts";
import type { Records } from "#records/watch.ts";
import { shardOf, type WorkClient } from "#shard/client/client.ts";
import { liveClaims } from "#shard/client/live-claims.ts";
import type { Node } from "#shard/node.ts";
import { isRejected } from "#shard/work/rejected.ts";

/** Removes effects of jobs that history has forgotten. */
export function keepEffects(
  effects: Effects,
  {
    client,
    node,
    clock,
    log,
  }: {
    readonly client: Pick<WorkClient, "job" | "jobs">;
    readonly node: Pick<Node, "keeper" | "cluster">;
    readonly clock: Clock;
    readonly log: (line: string) => void;
  },
): EffectsKeeper {
  const isKnown = async (job: string): Promise<boolean> => {
    try {
      await client.job(job, { tasksMax: 0 });
      return true;
    } catch (error) {
      if (isRejected(error, "job-unknown")) return false;
      throw error;
    }
  };
  const isRepeated = async (tenant: string, job: string): Promise<boolean> => {
    const { jobs, unreachable } = await client.jobs({ tenant, tags: [{ name: effectsTag, value: job }], limit: 1 });
    return jobs.length > 0 || unreachable.length > 0;
  };
  return new EffectsKeeper({
    effects,
    isRemembered: async (tenant, job) => (await isKnown(job)) || (await isRepeated(tenant, job)),
    isMine: () => node.keeper.held.has(shardOf("effects", node.cluster.shards)),
    clock,
    log,
  });
}

export function effectsOn({
  records,
  clock,
  client,
}: {
  readonly records: Records;
  readonly clock: Clock;
  readonly client: Pick<WorkClient, "task">;
}): Effects {
  const isLive = liveClaims(client, clock);
  return new Effects({
    records,
    clock,
    isLive: (tenant, { job, task, token }) => isLive({ tenant, job, task, claim: token }),
  });
}

/** The ledger of effects on a node. */
import type { Clock } from "#base/clock.ts";
import { Effects } from "#effects/effects.ts";
import type { Records } from "#records/watch.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { liveClaims } from "#shard/client/live-claims.ts";

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

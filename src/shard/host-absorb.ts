/** Takes each event of a shard into its open batch, just after it was applied. */
import type { Event } from "#kernel/event.ts";
import { jobOf } from "#kernel/event-job.ts";
import { historyOf } from "#kernel/history.ts";
import { journalKeyOf } from "./host-prepare.ts";
import type { HostedShard } from "./host-shard.ts";

export function absorb(shard: HostedShard, event: Event, storeNowMs: () => number): void {
  const { open, state } = shard;
  open.events.push(event);
  open.jobs.push(jobOf(state, event));
  if (shard.keepsHistory) historyOf(state, event, open.rows);
  if (event.kind === "forgotten") shard.forgets += 1;
  else if ((event.kind === "job-submitted" || event.kind === "job-joined") && event.key !== undefined)
    open.keys.push({
      key: journalKeyOf(event.key),
      job: event.job,
      payloadHash: event.payloadHash,
      // The event counts in kernel time, the journal forgets by its own clock.
      retainedUntilMs: Math.ceil(storeNowMs() + Math.max(0, (event.keyUntilMs ?? 0) - state.nowMs)),
    });
}

/** Adds each event of a shard to its open batch, right after the event was applied. */
import type { Event } from "#kernel/model/event.ts";
import { jobOf } from "#kernel/model/event-job.ts";
import { feedOf } from "#kernel/read/feed.ts";
import { historyOf } from "#kernel/read/history.ts";
import type { Observer } from "#kernel/step.ts";
import { journalKeyOf } from "./prepare.ts";
import type { HostedShard } from "./shard.ts";

export class Absorber implements Observer {
  readonly #shard: HostedShard;

  constructor(shard: HostedShard) {
    this.#shard = shard;
  }

  applied(event: Event): void {
    const shard = this.#shard;
    const { open, state } = shard;
    open.events.push(event);
    shard.writer.add(event);
    open.jobs.push(jobOf(state, event));
    if (shard.keepsHistory) historyOf(state, event, open.rows);
    if (open.feed) feedOf(state, event, { seq: shard.seq + 1, index: open.events.length - 1 }, open.feed);
    if (event.kind === "forgotten") shard.forgets += 1;
    else if ((event.kind === "job-submitted" || event.kind === "job-joined") && event.key !== undefined)
      open.keys.push({
        key: journalKeyOf(event.key),
        job: event.job,
        payloadHash: event.payloadHash,
        // By the shard's own time, by which keys are looked for and trimmed: by the store's clock, which may be
        // behind, a key would be free here while the shard still counts it as bound (K1).
        retainedUntilMs: event.keyUntilMs ?? 0,
      });
  }
}

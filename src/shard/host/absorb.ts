/** Adds each event of a shard to its open batch, right after the event was applied. */
import type { Event } from "#kernel/model/event.ts";
import { jobOf } from "#kernel/model/event-job.ts";
import { feedOf } from "#kernel/read/feed.ts";
import { historyOf } from "#kernel/read/history.ts";
import type { Observer } from "#kernel/step.ts";
import { journalKeyOf } from "./prepare.ts";
import type { HostedShard } from "./shard.ts";
import type { StoreClock } from "./kernel-clock.ts";

export class Absorber implements Observer {
  readonly #shard: HostedShard;
  readonly #storeClock: StoreClock;

  constructor(shard: HostedShard, storeClock: StoreClock) {
    this.#shard = shard;
    this.#storeClock = storeClock;
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
        // The event uses kernel time; the journal expires keys by its own clock.
        retainedUntilMs: Math.ceil(this.#storeClock.nowMs() + Math.max(0, (event.keyUntilMs ?? 0) - state.nowMs)),
      });
  }
}

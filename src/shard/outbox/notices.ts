/**
 * Tells that jobs have ended, as signals to stages that asked for it, for all shards of one node.
 *
 * NO1 Only durable ends are told (K7), and only while the owner's lease is valid (K8).
 * NO2 A notice is sent until the other shard has recorded or refused it and that is in this shard's log; a new owner
 * continues from the shard's state. The signal's id is made from the job and the notice, so it is recorded once.
 * NO3 Limits: how many at once, and growing pauses between two tries.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { formatJob, type ShardId } from "#base/ids.ts";
import { hash32 } from "#base/random.ts";
import type { CommandOf } from "#kernel/model/command.ts";
import type { Job } from "#kernel/model/entities.ts";
import type { NoticeOutcome } from "#kernel/model/model.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import type { ShardResponse } from "#shard/transport/protocol.ts";

export type NoticePorts = {
  readonly clock: Clock;
  /** Sends the signal to the owner of the shard, one try. */
  readonly signal: (shard: ShardId, command: CommandOf<"signal">) => Promise<ShardResponse>;
  /** Sends the command to the shard's own host. */
  readonly notified: (shard: ShardId, command: CommandOf<"notified">) => Promise<unknown>;
  readonly report: (doing: string, error: unknown) => void;
};

const atOnceMax = 32;
const backoffMs = 200;
const backoffMsMax = 30_000;
const reasonLengthMax = 1_000;

type Item = {
  readonly shard: HostedShard;
  readonly job: number;
  readonly notice: number;
  tries: number;
  outcome: NoticeOutcome | undefined;
  cancel: (() => void) | undefined;
};

/** What the signal says. */
export type EndNotice = {
  readonly job: string;
  readonly phase: string;
  readonly reason: string;
  readonly number?: number;
};

export class Notices implements ShardObserver {
  readonly #ports: NoticePorts;
  readonly #items = new Map<HostedShard, Set<Item>>();
  #ready: Item[] = [];
  #busy = 0;
  #stopped = false;

  constructor(ports: NoticePorts) {
    this.#ports = ports;
  }

  kill(): void {
    this.#stopped = true;
    for (const items of this.#items.values()) for (const { cancel } of items) cancel?.();
  }

  /** How many notices are known here. */
  get size(): number {
    return this.#items.values().reduce((sum, items) => sum + items.size, 0);
  }

  durable(shard: HostedShard, { events }: SealedBatch): void {
    // The first batch is the take-over: continue what an earlier owner left.
    if (!this.#items.has(shard)) {
      this.#items.set(shard, new Set());
      for (const job of shard.state.telling) this.#add(shard, job);
      return;
    }
    for (const event of events)
      if (event.kind === "job-ended") this.#add(shard, shard.state.jobs.get(event.job));
      else if (event.kind === "notified" && event.outcome === "given-up")
        this.#ports.report(
          `tell the end of ${formatJob(shard.shard, event.job)}`,
          new Fault("unavailable", "tell the end of a job", { why: "given up: every try of a week failed" }),
        );
  }

  gone(shard: HostedShard): void {
    const items = this.#items.get(shard);
    this.#items.delete(shard);
    for (const { cancel } of items ?? []) cancel?.();
    this.#ready = this.#ready.filter((item) => item.shard !== shard);
  }

  #add(shard: HostedShard, job: Job | undefined): void {
    if (!job || !shard.state.telling.has(job)) return;
    for (const notice of job.extras?.owed ?? []) {
      const item: Item = { shard, job: job.no, notice, tries: 0, outcome: undefined, cancel: undefined };
      this.#items.get(shard)?.add(item);
      this.#ready.push(item);
    }
    // After the batch: a shard that was just taken over is served by then.
    queueMicrotask(() => this.#pump());
  }

  #pump(): void {
    while (!this.#stopped && this.#busy < atOnceMax) {
      const item = this.#ready.shift();
      if (!item) return;
      this.#busy += 1;
      void this.#try(item).then((isOver) => {
        this.#busy -= 1;
        if (isOver) this.#items.get(item.shard)?.delete(item);
        else this.#later(item);
        this.#pump();
      });
    }
  }

  #later(item: Item): void {
    if (this.#stopped || this.#items.get(item.shard)?.has(item) !== true) return;
    const fullMs = Math.min(backoffMsMax, backoffMs * 2 ** Math.min(item.tries - 1, 20));
    // The jitter is derived from the job, so that a simulated run is repeatable.
    const inMs = fullMs * (0.5 + hash32(`${item.job}:${item.notice}:${item.tries}`) / 2 ** 33);
    item.cancel = this.#ports.clock.after(inMs, () => {
      item.cancel = undefined;
      this.#ready.push(item);
      this.#pump();
    });
  }

  /** True when nothing is left to do. */
  async #try(item: Item): Promise<boolean> {
    item.tries += 1;
    const { shard, notice } = item;
    const job = shard.state.jobs.get(item.job);
    if (!job || !shard.state.telling.has(job) || !job.extras?.owed.includes(notice)) return true;
    try {
      item.outcome ??= await this.#tell(shard, job, notice);
      if (item.outcome === undefined) return false;
      const { outcome } = item;
      await this.#ports.notified(shard.shard, { kind: "notified", job: job.no, notice, outcome });
      return true;
    } catch (error) {
      // Reported less and less often.
      if (!this.#stopped && this.#items.has(shard) && Number.isInteger(Math.log2(item.tries)) && item.tries > 4)
        this.#ports.report(`tell the end of ${formatJob(shard.shard, job.no)}`, error);
      return false;
    }
  }

  /** Undefined: try again later. */
  async #tell(shard: HostedShard, job: Job, index: number): Promise<NoticeOutcome | undefined> {
    const notice = job.extras?.notify[index];
    if (!notice || shard.phase !== "serving" || !shard.leaseStands) return undefined; // NO1
    const jobId = formatJob(shard.shard, job.no);
    const number = job.extras?.series?.number;
    const reason = job.reason.slice(0, reasonLengthMax);
    const said: EndNotice = { job: jobId, phase: job.phase, reason, ...(number !== undefined && { number }) };
    const response = await this.#ports.signal(notice.shard, {
      kind: "signal",
      tenant: job.tenant.name,
      job: notice.job,
      stage: notice.stage,
      signal: { id: `ended ${jobId} ${index}`, name: `ended:${notice.name}`, payload: JSON.stringify(said) },
    });
    if (response.kind === "reply") return "delivered";
    if (response.kind !== "rejected") return undefined;
    const { rejection } = response;
    return "retryAfterMs" in rejection || rejection.kind === "broken" ? undefined : "refused";
  }
}

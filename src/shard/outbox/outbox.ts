/**
 * Publishes committed results that ask for it, for all shards of one node.
 *
 * U1 Only durable results are published (K7), and a publication begins only while the owner's lease is valid (K8). If
 * the owner loses the shard during a publication, what it published was still committed.
 * U2 A publication is tried until the publisher answers "done" and that is in the log; a new owner continues from the
 * shard's state. So a result may be published more than once, and publishers must tolerate that.
 * U3 Limits per door: how many publications at once, how long each try may take, and growing pauses between two tries.
 * A door whose publisher hangs delays no other door.
 */
import { Deadline } from "#base/calls/abort.ts";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { formatJob, formatTask, type ShardId } from "#base/ids.ts";
import type { CommandOf } from "#kernel/model/command.ts";
import type * as kernel from "#kernel/model/entities.ts";
import type { Result } from "#kernel/model/model.ts";
import { isReference } from "#kernel/model/text-reference.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import type { LargeTexts } from "#shard/texts/large-texts.ts";
import { Lane, Unpublished } from "./outbox-lane.ts";

export type Publication = {
  readonly shard: ShardId;
  readonly tenant: string;
  readonly door: string;
  readonly job: number;
  readonly task: number;
  readonly generation: number;
  /** The task's own spec, from its door. */
  readonly spec: string;
  /**
   * What the result asks to publish, in a format of its door. It comes from an executor, so it counts only as far as
   * the spec allows.
   */
  readonly publish: string;
  readonly result: Result;
  /** Kernel time. */
  readonly committedAtMs: number;
};

/**
 * "done": published, by this call or an earlier one, or it can never be published. "later", or an exception: try again.
 * May be called again after "done", also by another node at the same time. After `signal` the answer is ignored.
 */
export type Publisher = (publication: Publication, signal: AbortSignal) => Promise<"done" | "later">;

export type OutboxSettings = {
  /** For each door. */
  readonly atOnceMax: number;
  /** How long one try may take. */
  readonly tryMsMax: number;
  readonly backoffMs: number;
  readonly backoffMsMax: number;
};

export const defaultOutboxSettings: OutboxSettings = {
  atOnceMax: 64,
  tryMsMax: 30_000,
  backoffMs: 100,
  backoffMsMax: 30_000,
};

export type OutboxPorts = {
  readonly clock: Clock;
  readonly settings: OutboxSettings;
  readonly publisher: Publisher;
  readonly texts?: Pick<LargeTexts, "read">;
  /** Sends the command to the shard's own host. */
  readonly published: (shard: ShardId, command: CommandOf<"published">) => Promise<unknown>;
  readonly report: (doing: string, error: unknown) => void;
};

/** For publications that are aborted: no caller is left to hear of it. */
const gone = new Fault("stale", "publish", { why: "another node owns the shard, or this node stops" });

export class Outbox implements ShardObserver {
  readonly #ports: OutboxPorts;
  readonly #lanes = new Map<string, Lane>();
  readonly #items = new Map<HostedShard, Set<Unpublished>>();
  #stopped = false;

  constructor(ports: OutboxPorts) {
    this.#ports = ports;
  }

  kill(): void {
    this.#stopped = true;
    for (const lane of this.#lanes.values()) lane.cancelTimer?.();
    for (const items of this.#items.values()) for (const { trying } of items) trying?.end(gone);
  }

  durable(shard: HostedShard, { events }: SealedBatch): void {
    // The first batch is the take-over: continue what an earlier owner left.
    if (!this.#items.has(shard)) return this.#resume(shard);
    for (const event of events)
      if (event.kind === "committed") {
        if (event.result.publish !== undefined) this.#add(shard, shard.state.outbox.get(event.task));
      } else if (event.kind === "publishing-given-up")
        this.#ports.report(
          `publish results of ${formatJob(shard.shard, event.job)}`,
          new Fault("unavailable", "publish", { why: "given up: the job ended long ago and every try failed" }),
        );
  }

  gone(shard: HostedShard): void {
    const items = this.#items.get(shard) ?? [];
    this.#items.delete(shard);
    for (const item of items) {
      item.trying?.end(gone);
      item.lane.remove(item);
      this.#leave(item.lane);
    }
  }

  /** How many publications are known here. */
  get size(): number {
    return this.#items.values().reduce((sum, items) => sum + items.size, 0);
  }

  #resume(shard: HostedShard): void {
    this.#items.set(shard, new Set());
    for (const waiting of shard.state.outbox.values()) this.#add(shard, waiting);
  }

  #add(shard: HostedShard, waiting: kernel.Publication | undefined): void {
    // Memory is ahead of the log: the result may have been invalidated already.
    if (!waiting) return;
    const { door } = waiting.job;
    let lane = this.#lanes.get(door);
    if (!lane) this.#lanes.set(door, (lane = new Lane(door)));
    const item = new Unpublished(shard, waiting.task, waiting.generation, lane);
    this.#items.get(shard)?.add(item);
    lane.members += 1;
    lane.add(item);
    this.#wake(lane);
  }

  /** Publications that arrive in the same turn go together; a shard that was just taken over is served by then. */
  #wake(lane: Lane): void {
    if (lane.isWoken || this.#stopped) return;
    lane.isWoken = true;
    queueMicrotask(() => {
      lane.isWoken = false;
      this.#pump(lane);
    });
  }

  #pump(lane: Lane): void {
    if (this.#stopped) return;
    const { clock, settings } = this.#ports;
    while (lane.busy < settings.atOnceMax) {
      const item = lane.next(clock.monotonicMs());
      if (!item) break;
      lane.busy += 1;
      void this.#try(item);
    }
    lane.cancelTimer?.();
    lane.cancelTimer = undefined;
    const inMs = lane.nextMono - clock.monotonicMs();
    if (lane.busy < settings.atOnceMax && Number.isFinite(inMs))
      lane.cancelTimer = clock.after(Math.max(0, inMs), () => this.#pump(lane));
  }

  async #try(item: Unpublished): Promise<void> {
    item.tries += 1;
    const waiting = item.shard.state.outbox.get(item.task);
    // Published, invalidated or given up.
    const isOver = waiting?.generation !== item.generation;
    const outcome = isOver ? "over" : item.isKnown ? "done" : await this.#publish(item, waiting);
    item.lane.busy -= 1;
    this.#wake(item.lane);
    if (outcome === "later") return this.#later(item);
    if (outcome === "over") return this.#drop(item);
    item.isKnown = true;
    try {
      const { task, generation } = item;
      await this.#ports.published(item.shardId, { kind: "published", task, generation });
      this.#drop(item);
    } catch {
      // The shard is not served here now: its next owner records it.
      this.#later(item);
    }
  }

  #drop(item: Unpublished): void {
    if (this.#items.get(item.shard)?.delete(item)) this.#leave(item.lane);
  }

  #leave(lane: Lane): void {
    lane.members -= 1;
    if (lane.members > 0) return;
    lane.cancelTimer?.();
    this.#lanes.delete(lane.door);
  }

  #isOurs(item: Unpublished): boolean {
    return this.#items.get(item.shard)?.has(item) === true;
  }

  #later(item: Unpublished): void {
    const { lane } = item;
    if (this.#stopped || !this.#isOurs(item)) return;
    lane.retry(item, this.#ports.clock.monotonicMs(), this.#ports.settings);
    this.#wake(lane);
  }

  async #publish(item: Unpublished, waiting: kernel.Publication): Promise<"done" | "later"> {
    const { clock, settings, publisher, texts } = this.#ports;
    const { shard, shardId, task, generation } = item;
    if (shard.phase !== "serving" || !shard.leaseStands) return "later"; // U1
    const { job, spec, result, committedAtMs } = waiting;
    const { publish = "" } = result;
    const { no, door, tenant } = job;
    const unpublished = (): Fault => new Fault("unavailable", "publish", { door, tries: item.tries });
    const trying = (item.trying = new Deadline(clock, settings.tryMsMax, undefined, unpublished));
    try {
      const about = { shard: shardId, tenant: tenant.name, door, job: no, task, generation };
      const whole = texts && isReference(spec) ? await trying.orOver(texts.read(spec)) : spec;
      const publication = { ...about, spec: whole, publish, result, committedAtMs };
      const outcome = await trying.orOver(publisher(publication, trying.signal));
      if (outcome === "later") this.#failed(item, unpublished());
      return outcome;
    } catch (error) {
      this.#failed(item, error);
      return "later";
    } finally {
      trying[Symbol.dispose]();
      item.trying = undefined;
    }
  }

  /** Reported less and less often: the first time, the second, the fourth, the eighth... */
  #failed(item: Unpublished, error: unknown): void {
    const { shardId, task, tries } = item;
    if (this.#stopped || !this.#isOurs(item) || !Number.isInteger(Math.log2(tries))) return;
    this.#ports.report(`publish the result of ${formatTask(shardId, task)}`, error);
  }
}

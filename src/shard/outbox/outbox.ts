/**
 * Makes known outside what committed results ask for, for all shards of one node.
 *
 * U1 Only what is durable is published (K7), and begun only while the owner's lease stands (K8). An owner that lost its
 *    say in the middle has published something that was committed all the same.
 * U2 It is tried until the publisher says "done" and that is in the log; a new owner goes on from the shard's state. So
 *    it may be published more than once, and publishers must not mind.
 * U3 So many at once for each door, so long for each try, and longer and longer pauses between two: a door whose
 *    publisher hangs holds up nobody else.
 */
import { Deadline } from "#base/abort.ts";
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
  /** The task's own, from its door. */
  readonly spec: string;
  /** What the result asked for, in its door's own words: an executor's, so it counts only as far as the spec allows. */
  readonly publish: string;
  readonly result: Result;
  /** By the shard's time. */
  readonly committedAtMs: number;
};

/**
 * "done": it is known, by this call or an earlier one, or it makes no sense and never will. "later", or a throw: ask
 * again. It may be called again for what is done, also by another node at the same time. After `signal` nobody listens.
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
  /** To the shard's own host. */
  readonly published: (shard: ShardId, command: CommandOf<"published">) => Promise<unknown>;
  readonly report: (doing: string, error: unknown) => void;
};

/** Nobody is told: those who would be are gone. */
const gone = new Fault("stale", "publish", { why: "the shard is another's, or the node stops" });

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
    // The first batch is the take-over: what an earlier owner left is gone on with.
    if (!this.#items.has(shard)) return this.#resume(shard);
    for (const event of events)
      if (event.kind === "committed") {
        if (event.result.publish !== undefined) this.#add(shard, shard.state.outbox.get(event.task));
      } else if (event.kind === "publishing-given-up")
        this.#ports.report(
          `publish results of ${formatJob(shard.shard, event.job)}`,
          new Fault("unavailable", "publish", { why: "given up: the job ended long ago and no try has got through" }),
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

  /** How many are known here. */
  get size(): number {
    return this.#items.values().reduce((sum, items) => sum + items.size, 0);
  }

  #resume(shard: HostedShard): void {
    this.#items.set(shard, new Set());
    for (const waiting of shard.state.outbox.values()) this.#add(shard, waiting);
  }

  #add(shard: HostedShard, waiting: kernel.Publication | undefined): void {
    // Memory runs ahead of the log: the result may have been invalidated already.
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

  /** What comes in the same turn goes together, and a shard that has just been taken over is served by then. */
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
      // Not served any more, or not just now: whoever serves it next will say so.
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

  /** Told less and less often: the first time, the second, the fourth, the eighth... */
  #failed(item: Unpublished, error: unknown): void {
    const { shardId, task, tries } = item;
    if (this.#stopped || !this.#isOurs(item) || !Number.isInteger(Math.log2(tries))) return;
    this.#ports.report(`publish the result of ${formatTask(shardId, task)}`, error);
  }
}

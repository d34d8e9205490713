/** Results to be published through one door: which is next, and which wait for another try. */
import type { Deadline } from "#base/calls/abort.ts";
import type { ShardId } from "#base/ids.ts";
import { hash32 } from "#base/random.ts";
import { Agenda } from "#kernel/ready/agenda.ts";
import type { HostedShard } from "#shard/host/shard.ts";

/** One result that is durable and not known to be published. */
export class Unpublished {
  readonly shard: HostedShard;
  readonly task: number;
  readonly generation: number;
  readonly lane: Lane;
  tries = 0;
  /** The publisher answered "done"; that is still to be logged. */
  isKnown = false;
  /** While it is being published. */
  trying: Deadline | undefined;
  agendaAt = -1;
  agendaSlot = 0;

  constructor(shard: HostedShard, task: number, generation: number, lane: Lane) {
    this.shard = shard;
    this.task = task;
    this.generation = generation;
    this.lane = lane;
  }

  get shardId(): ShardId {
    return this.shard.shard;
  }
}

export class Lane {
  readonly door: string;
  /** All results in it, and how many of them are being published now. */
  members = 0;
  busy = 0;
  isWoken = false;
  cancelTimer: (() => void) | undefined;
  readonly #fresh = new Set<Unpublished>();
  readonly #later = new Agenda<Unpublished>();

  constructor(door: string) {
    this.door = door;
  }

  add(item: Unpublished): void {
    this.#fresh.add(item);
  }

  /** Doubles with each try; the jitter is derived from the task, so that a simulated run is repeatable. */
  retry(
    item: Unpublished,
    nowMono: number,
    backoff: { readonly backoffMs: number; readonly backoffMsMax: number },
  ): void {
    const fullMs = Math.min(backoff.backoffMsMax, backoff.backoffMs * 2 ** Math.min(item.tries - 1, 30));
    const inMs = fullMs * (0.5 + hash32(`${item.task}:${item.tries}`) / 2 ** 33);
    this.#later.file(item, nowMono + inMs, nowMono);
  }

  /** Removes and returns the next one: those that have waited longest come first. */
  next(nowMono: number): Unpublished | undefined {
    const due = this.#later.take(nowMono);
    if (due) return due;
    const [item] = this.#fresh;
    if (item) this.#fresh.delete(item);
    return item;
  }

  remove(item: Unpublished): void {
    this.#fresh.delete(item);
    this.#later.drop(item);
  }

  /** When the next retry is due; Infinity when there is none. */
  get nextMono(): number {
    return this.#later.nextAtMs();
  }
}

/**
 * The owner's side of watching jobs. A watcher gets events only when they are durable. It gets the events that it
 * missed from a ring of recent events if that reaches back far enough, and otherwise, or if it is too slow for its
 * bounded buffer, a new snapshot.
 */
import type { Event } from "#kernel/model/event.ts";
import type { JobView } from "#kernel/read/query.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { Seq } from "#journal/journal.ts";
import type { Stamp, WatchMessage, WatchRequest } from "#shard/transport/protocol.ts";
import { weighEvents, WatchMemory } from "./watch-memory.ts";

export type WatcherLimits = {
  readonly watchersMax: number;
  /** Recent durable events, per shard. */
  readonly ringBatchesMax: number;
  readonly ringBytesMax: number;
  /** Unread messages of a watcher, before it gets a new snapshot instead. */
  readonly unreadMax: number;
  /** Their size: for one watcher, and for all of the node together. */
  readonly unreadBytesMax: number;
  readonly nodeUnreadBytesMax: number;
};

export type DurableEvents = {
  readonly stamp: Stamp;
  readonly events: readonly Event[];
  readonly jobs: readonly (number | undefined)[];
  readonly sizeBytes: number;
};

export class Watcher {
  readonly request: WatchRequest;
  readonly #limits: Pick<WatcherLimits, "unreadMax" | "unreadBytesMax">;
  readonly #memory: WatchMemory;
  #unread: WatchMessage[] = [];
  #weights: number[] = [];
  #bytes = 0;
  #wake: (() => void) | undefined;
  closed = false;
  /** Too slow: its unread messages were dropped, and a snapshot has to replace them. */
  behind = false;

  constructor(request: WatchRequest, limits: Pick<WatcherLimits, "unreadMax" | "unreadBytesMax">, memory: WatchMemory) {
    this.request = request;
    this.#limits = limits;
    this.#memory = memory;
  }

  get isIdle(): boolean {
    return this.#unread.length === 0;
  }

  /**
   * False when the watcher has fallen behind. A single message is accepted however large it is; otherwise it could
   * never be delivered.
   */
  push(message: WatchMessage, bytes = 0): boolean {
    if (this.closed) return true;
    const { unreadMax, unreadBytesMax } = this.#limits;
    const isFull = this.#bytes + bytes > unreadBytesMax || !this.#memory.hasRoom(bytes);
    if (this.#unread.length >= unreadMax || (this.#unread.length > 0 && isFull)) {
      this.#forget();
      this.behind = true;
    } else {
      this.#unread.push(message);
      this.#weights.push(bytes);
      this.#count(bytes);
    }
    this.#wake?.();
    return !this.behind;
  }

  /** The watcher has stopped reading. */
  leave(): void {
    this.close();
    this.#forget();
  }

  #forget(): void {
    this.#count(-this.#bytes);
    this.#unread = [];
    this.#weights = [];
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#memory.bytes += bytes;
  }

  /** Messages pushed before are still read. */
  close(): void {
    this.closed = true;
    this.#wake?.();
  }

  read(): WatchMessage | undefined {
    this.#count(-(this.#weights.shift() ?? 0));
    return this.#unread.shift();
  }

  /** Resolves when there is something to read, or the watch is closed, or the watcher has fallen behind. */
  async ready(): Promise<void> {
    while (this.#unread.length === 0 && !this.closed && !this.behind)
      await new Promise<void>((wake) => (this.#wake = wake));
  }
}

export class Watchers {
  readonly #limits: WatcherLimits;
  readonly #memory: WatchMemory;
  readonly #byTenant = new Map<string, number>();
  readonly #byJob = new Map<number, Set<Watcher>>();
  /** Entries before `#ringFrom` are released: removing them one by one would move all the others each time. */
  #ring: (DurableEvents | undefined)[] = [];
  #ringFrom = 0;
  #ringBytes = 0;
  /** The ring has every batch after this one. */
  #ringAfter: Seq | undefined;
  #size = 0;

  constructor(limits: WatcherLimits, memory = new WatchMemory(limits.nodeUnreadBytesMax)) {
    this.#limits = limits;
    this.#memory = memory;
  }

  get size(): number {
    return this.#size;
  }

  /** A tenant may have at most as many watches as are left for all others, so that the next tenant can always watch. */
  hasRoomFor({ tenant = "" }: WatchRequest): boolean {
    return (this.#byTenant.get(tenant) ?? 0) < this.#limits.watchersMax - this.#size;
  }

  create(request: WatchRequest): Watcher {
    return new Watcher(request, this.#limits, this.#memory);
  }

  /** The ring begins after the batch; what follows is published without gaps. */
  beginAfter(seq: Seq): void {
    this.#ringAfter = seq;
  }

  /** Keeps a batch for watchers that come back; `publish` does so by itself. */
  remember(durable: DurableEvents): void {
    this.#ringAfter ??= durable.stamp.seq - 1;
    this.#ring.push(durable);
    this.#ringBytes += durable.sizeBytes;
    while (
      this.#ring.length - this.#ringFrom > this.#limits.ringBatchesMax ||
      this.#ringBytes > this.#limits.ringBytesMax
    ) {
      const oldest = this.#ring[this.#ringFrom];
      if (!oldest) break;
      this.#ringBytes -= oldest.sizeBytes;
      this.#ringAfter = oldest.stamp.seq;
      this.#ring[this.#ringFrom] = undefined;
      this.#ringFrom += 1;
    }
    if (this.#ringFrom * 2 <= this.#ring.length) return;
    this.#ring.splice(0, this.#ringFrom);
    this.#ringFrom = 0;
  }

  publish(durable: DurableEvents): void {
    this.remember(durable);
    if (this.#byJob.size === 0) return;
    const byJob = new Map<number, Event[]>();
    for (let i = 0; i < durable.events.length; i += 1) {
      const event = durable.events[i] as Event;
      const job = durable.jobs[i];
      if (job === undefined || !this.#byJob.has(job)) continue;
      const events = byJob.get(job);
      if (events) events.push(event);
      else byJob.set(job, [event]);
    }
    for (const [job, events] of byJob) {
      const bytes = weighEvents(events);
      for (const watcher of this.#byJob.get(job) ?? []) this.#tell(watcher, durable.stamp, events, bytes);
    }
  }

  canResume(after: Stamp, newest: Seq): boolean {
    return this.#ringAfter !== undefined && after.seq >= this.#ringAfter && after.seq <= newest;
  }

  /** From now on the watcher gets what is published; first what it missed since `after`. */
  resume(watcher: Watcher, after: Stamp, now: { readonly stamp: Stamp; readonly ended: boolean }): void {
    this.#add(watcher);
    for (const durable of this.#ring) {
      if (!durable || durable.stamp.seq <= after.seq) continue;
      const { stamp, events, jobs } = durable;
      const missed = events.filter((_, i) => jobs[i] === watcher.request.job);
      if (missed.length > 0) this.#tell(watcher, stamp, missed, weighEvents(missed));
    }
    if (watcher.closed || watcher.behind) return;
    if (now.ended) this.#end(watcher, now.stamp);
    else if (watcher.isIdle) watcher.push({ kind: "heartbeat", stamp: now.stamp });
  }

  begin(watcher: Watcher, stamp: Stamp, view: JobView): void {
    this.#add(watcher);
    watcher.push({ kind: "snapshot", stamp, view });
    if (view.endedAtMs !== undefined) this.#end(watcher, stamp);
  }

  reject(watcher: Watcher, stamp: Stamp, rejection: Rejection): void {
    watcher.push({ kind: "rejected", stamp, rejection });
    this.remove(watcher);
    watcher.close();
  }

  heartbeat(stamp: Stamp): void {
    for (const watchers of this.#byJob.values())
      for (const watcher of watchers) if (watcher.isIdle) watcher.push({ kind: "heartbeat", stamp });
  }

  remove(watcher: Watcher): void {
    const watchers = this.#byJob.get(watcher.request.job);
    if (!watchers?.delete(watcher)) return;
    this.#count(watcher, -1);
    if (watchers.size === 0) this.#byJob.delete(watcher.request.job);
  }

  moved(hint: string | undefined): void {
    for (const watchers of this.#byJob.values())
      for (const watcher of watchers) {
        watcher.push({ kind: "moved", hint });
        watcher.close();
      }
    this.#byJob.clear();
    this.#byTenant.clear();
    this.#size = 0;
  }

  #add(watcher: Watcher): void {
    const { job } = watcher.request;
    const watchers = this.#byJob.get(job) ?? new Set();
    watchers.add(watcher);
    this.#byJob.set(job, watchers);
    this.#count(watcher, 1);
  }

  #count({ request: { tenant = "" } }: Watcher, by: number): void {
    this.#size += by;
    const count = (this.#byTenant.get(tenant) ?? 0) + by;
    if (count === 0) this.#byTenant.delete(tenant);
    else this.#byTenant.set(tenant, count);
  }

  #tell(watcher: Watcher, stamp: Stamp, events: readonly Event[], bytes: number): void {
    if (!watcher.push({ kind: "events", stamp, events }, bytes)) return this.remove(watcher);
    if (events.some(({ kind }) => kind === "job-ended")) this.#end(watcher, stamp);
  }

  #end(watcher: Watcher, stamp: Stamp): void {
    if (!watcher.push({ kind: "end", stamp })) return this.remove(watcher);
    this.remove(watcher);
    watcher.close();
  }
}

/**
 * The owner's side of watching jobs. A watcher hears of events only when they are durable, gets everything that it
 * missed from a ring of recent events where that reaches back far enough, and a fresh snapshot where it does not or
 * where the watcher is too slow for its bounded buffer.
 */
import type { Event } from "#kernel/event.ts";
import type { JobView } from "#kernel/query.ts";
import type { Rejection } from "#kernel/rejection.ts";
import type { Seq } from "#journal/journal.ts";
import type { Stamp, WatchMessage, WatchRequest } from "./protocol.ts";

export type WatcherLimits = {
  readonly watchersMax: number;
  /** Of recent durable events, per shard. */
  readonly ringBatchesMax: number;
  readonly ringBytesMax: number;
  /** Messages that a watcher may leave unread before it is given a new snapshot instead. */
  readonly unreadMax: number;
};

export type DurableEvents = {
  readonly stamp: Stamp;
  readonly events: readonly Event[];
  readonly jobs: readonly (number | undefined)[];
  readonly sizeBytes: number;
};

export class Watcher {
  readonly request: WatchRequest;
  readonly #unreadMax: number;
  #unread: WatchMessage[] = [];
  #wake: (() => void) | undefined;
  closed = false;
  /** Too slow: what it had not read was thrown away, and a snapshot has to make up for it. */
  behind = false;

  constructor(request: WatchRequest, unreadMax: number) {
    this.request = request;
    this.#unreadMax = unreadMax;
  }

  get isIdle(): boolean {
    return this.#unread.length === 0;
  }

  /** False when the watcher has fallen behind. */
  push(message: WatchMessage): boolean {
    if (this.closed) return true;
    if (this.#unread.length >= this.#unreadMax) {
      this.#unread = [];
      this.behind = true;
    } else this.#unread.push(message);
    this.#wake?.();
    return !this.behind;
  }

  /** What was pushed before is still read. */
  close(): void {
    this.closed = true;
    this.#wake?.();
  }

  read(): WatchMessage | undefined {
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
  readonly #byJob = new Map<number, Set<Watcher>>();
  /** What is before `#ringFrom` has been let go of: taking it out one by one would move all the others each time. */
  #ring: (DurableEvents | undefined)[] = [];
  #ringFrom = 0;
  #ringBytes = 0;
  /** The ring holds every batch after this one. */
  #ringAfter: Seq | undefined;
  #size = 0;

  constructor(limits: WatcherLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  get isFull(): boolean {
    return this.#size >= this.#limits.watchersMax;
  }

  create(request: WatchRequest): Watcher {
    return new Watcher(request, this.#limits.unreadMax);
  }

  /** The ring begins after the batch; what follows is published without gaps. */
  beginAfter(seq: Seq): void {
    this.#ringAfter = seq;
  }

  /** Keeps a batch for those who come back; `publish` does so by itself. */
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
    for (const [job, events] of byJob)
      for (const watcher of this.#byJob.get(job) ?? []) this.#tell(watcher, durable.stamp, events);
  }

  canResume(after: Stamp, newest: Seq): boolean {
    return this.#ringAfter !== undefined && after.seq >= this.#ringAfter && after.seq <= newest;
  }

  /** From here on the watcher gets what is published; first what it missed since `after`. */
  resume(watcher: Watcher, after: Stamp, now: { readonly stamp: Stamp; readonly ended: boolean }): void {
    this.#add(watcher);
    for (const durable of this.#ring) {
      if (!durable || durable.stamp.seq <= after.seq) continue;
      const { stamp, events, jobs } = durable;
      const missed = events.filter((_, i) => jobs[i] === watcher.request.job);
      if (missed.length > 0) this.#tell(watcher, stamp, missed);
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
    this.#size -= 1;
    if (watchers.size === 0) this.#byJob.delete(watcher.request.job);
  }

  moved(hint: string | undefined): void {
    for (const watchers of this.#byJob.values())
      for (const watcher of watchers) {
        watcher.push({ kind: "moved", hint });
        watcher.close();
      }
    this.#byJob.clear();
    this.#size = 0;
  }

  #add(watcher: Watcher): void {
    const { job } = watcher.request;
    const watchers = this.#byJob.get(job) ?? new Set();
    watchers.add(watcher);
    this.#byJob.set(job, watchers);
    this.#size += 1;
  }

  #tell(watcher: Watcher, stamp: Stamp, events: readonly Event[]): void {
    if (!watcher.push({ kind: "events", stamp, events })) return this.remove(watcher);
    if (events.some(({ kind }) => kind === "job-ended")) this.#end(watcher, stamp);
  }

  #end(watcher: Watcher, stamp: Stamp): void {
    if (!watcher.push({ kind: "end", stamp })) return this.remove(watcher);
    this.remove(watcher);
    watcher.close();
  }
}

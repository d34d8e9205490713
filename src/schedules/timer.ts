/**
 * Starts the jobs of schedules. Every node may run it: who owns a schedule's shard looks after the schedule, and two
 * nodes that both believe so do no harm.
 *
 * SC1 For one instant of a schedule there is at most one job. The record says that an instant is being started before
 *     its job is submitted; the submission has a request key of (schedule, instant), which the engine keeps for 24
 *     hours (K1); and an instant that was being started for longer than 23 hours is not tried again.
 * SC2 An instant that is due while some node runs has its job, however often owners die in between.
 */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Typed } from "#records/typed.ts";
import { cadenceOf, type Cadence } from "./cron.ts";
import { dueAt, type Due } from "./due.ts";
import type { Schedule, Schedules } from "./schedule.ts";

export type TimerPorts = {
  readonly schedules: Schedules;
  readonly clock: Clock;
  /** Whether this node looks after what has this key. */
  readonly owns: (key: string) => boolean;
  /** Submits the job under the request key; the same key gives the same job. */
  readonly start: (schedule: Typed<Schedule>, instant: Instant) => Promise<{ readonly jobId: string }>;
  readonly log: (line: string) => void;
  readonly observe?: ((event: TimerEvent) => void) | undefined;
};

export type Instant = { readonly atMs: number; readonly key: string };
export type TimerEvent =
  | { readonly kind: "started"; readonly lagMs: number }
  | { readonly kind: "skipped"; readonly count: number }
  | { readonly kind: "failed" };

type Known = { readonly record: Typed<Schedule>; readonly cadence: Cadence; readonly nextMs: number };

const lookEveryMs = 1_000;
const stillSafeMs = 23 * 3_600_000;

export class ScheduleTimer implements AsyncDisposable {
  readonly #ports: TimerPorts;
  readonly #known = new Map<string, Known>();
  readonly #ended = new AbortController();
  readonly #busy = new Set<string>();
  readonly #done: Promise<unknown>;

  constructor(ports: TimerPorts) {
    this.#ports = ports;
    this.#done = Promise.all([this.#watch(), this.#tick()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new Error("the timer ends"));
    await this.#done;
  }

  /** Follows the records; a database that is away for a while is asked again. */
  async #watch(): Promise<void> {
    const { schedules, clock, log } = this.#ports;
    const { signal } = this.#ended;
    while (!signal.aborted) {
      try {
        for await (const { tenant, isReset, changed, removed } of schedules.watch({}, signal)) {
          if (isReset) this.#forget(tenant);
          for (const record of changed) this.#learn(record);
          for (const name of removed) this.#known.delete(keyOf({ tenant, name }));
        }
      } catch (error) {
        log(`watch schedules: ${error instanceof Error ? error.message : String(error)}`);
        await clock.sleep(lookEveryMs, signal).catch(() => undefined);
      }
    }
  }

  #forget(tenant: string): void {
    for (const [key, { record }] of this.#known) if (record.tenant === tenant) this.#known.delete(key);
  }

  #learn(record: Typed<Schedule>): void {
    const before = this.#known.get(keyOf(record));
    if (before && before.record.version >= record.version) return;
    const { cron, zone, settledMs } = record.value;
    try {
      const cadence = cadenceOf(cron, zone);
      this.#known.set(keyOf(record), { record, cadence, nextMs: cadence.after(settledMs) ?? Infinity });
    } catch (error) {
      this.#known.delete(keyOf(record));
      this.#ports.log(`schedule ${keyOf(record)}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async #tick(): Promise<void> {
    const { clock } = this.#ports;
    const { signal } = this.#ended;
    while (!signal.aborted) {
      for (const [key, known] of this.#known) this.#look(key, known);
      await clock.sleep(lookEveryMs, signal).catch(() => undefined);
    }
  }

  #look(key: string, { record, cadence, nextMs }: Known): void {
    const { clock, owns, log } = this.#ports;
    const nowMs = clock.wallMs();
    if (nextMs > nowMs || record.value.paused || this.#busy.has(key) || !owns(key)) return;
    const due = dueOf(record.value, cadence, nowMs);
    this.#busy.add(key);
    this.#settle(record, due)
      .catch((error: unknown) => {
        this.#ports.observe?.({ kind: "failed" });
        log(`schedule ${key}: ${error instanceof Error ? error.message : String(error)}`);
      })
      .finally(() => this.#busy.delete(key));
  }

  /** One instant after the other; stops where another node, or a person, has changed the schedule. */
  async #settle(record: Typed<Schedule>, due: Due): Promise<void> {
    let current: Typed<Schedule> | undefined = record;
    for (const [i, atMs] of due.fire.entries()) {
      if (this.#ended.signal.aborted || !current) return;
      const isLast = i === due.fire.length - 1;
      current = await this.#fire(current, atMs, isLast ? due.through : atMs);
    }
    if (due.fire.length === 0 && current)
      current = await this.#ports.schedules.replace(current, { ...current.value, settledMs: due.through });
    if (current) this.#learn(current);
    if (due.skipped > 0) this.#ports.observe?.({ kind: "skipped", count: due.skipped });
  }

  async #fire(record: Typed<Schedule>, atMs: number, settledMs: number): Promise<Typed<Schedule> | undefined> {
    const { schedules, clock, start, observe } = this.#ports;
    const nowMs = clock.wallMs();
    const { starting, ...value } = record.value;
    if (starting?.atMs === atMs && nowMs - starting.sinceMs > stillSafeMs) {
      const why = "a node died while it started this job, and too much time has passed to try again";
      return await schedules.replace(record, { ...value, settledMs, trouble: { atMs, why } });
    }
    const begun =
      starting?.atMs === atMs
        ? record
        : await schedules.replace(record, { ...value, starting: { atMs, sinceMs: nowMs } });
    if (!begun) return undefined;
    const key = `schedule ${value.id} ${new Date(atMs).toISOString()}`;
    try {
      const { jobId } = await start(record, { atMs, key });
      observe?.({ kind: "started", lagMs: clock.wallMs() - atMs });
      return await schedules.replace(begun, { ...value, settledMs, last: { atMs, job: jobId }, trouble: undefined });
    } catch (error) {
      if (!isFinal(error)) throw error; // the next look tries again, under the same key
      observe?.({ kind: "failed" });
      const why = error instanceof Error ? error.message.slice(0, 1_000) : String(error);
      return await schedules.replace(begun, { ...value, settledMs, trouble: { atMs, why } });
    }
  }
}

/** Trying again would not help: what is to be submitted is wrong. */
const isFinal = (error: unknown): boolean => isFault(error, "invalid");

function dueOf({ catchUp, settledMs, starting }: Schedule, cadence: Cadence, nowMs: number): Due {
  const due = dueAt(cadence, { settledMs, nowMs, catchUp });
  // What was begun is finished, whatever became of its time meanwhile: its job may be there.
  if (!starting || starting.atMs <= settledMs || due.fire.includes(starting.atMs)) return due;
  return { ...due, fire: [starting.atMs, ...due.fire.filter((at) => at > starting.atMs)] };
}

export const keyOf = ({ tenant, name }: { readonly tenant: string; readonly name: string }): string =>
  `${tenant}/${name}`;

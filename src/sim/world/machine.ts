import { bootClock } from "#base/boot-clock.ts";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { World } from "./world.ts";

/**
 * Clocks advance in ticks. Otherwise a sleep that ends a rounding error too early, and is followed by one for the rest,
 * would never end: the rest is too small to change the world's time at all.
 */
const tickMs = 0.001;

/** The clock checks for a sleep every 100 ms; turns at exactly that instant count, too. */
const drowsyMs = 101;

/** How a machine's clocks differ from the world's: a constant rate, and a wall clock that may be set. */
export type MachineClock = {
  /** Seconds on its clock per second of the world. */
  readonly rate: number;
  readonly bootMonotonicMs: number;
  wallOffsetMs: number;
};

/** A machine survives its crashes: name, clocks and address stay; what runs on it is a `Life`. */
export class Machine {
  readonly world: World;
  readonly name: string;
  readonly clock: MachineClock;
  life: Life | undefined;
  lives = 0;

  constructor(world: World, name: string, clock: MachineClock) {
    this.world = world;
    this.name = name;
    this.clock = clock;
  }

  get up(): boolean {
    return this.life !== undefined && this.life.state !== "dead";
  }

  boot(): Life {
    this.life?.end();
    this.lives += 1;
    this.life = new Life(this, this.lives);
    this.world.say(`${this.life.name} boots`);
    return this.life;
  }

  crash(): void {
    if (!this.up) return;
    this.world.say(`${this.life?.name} crashes`);
    this.life?.end();
  }

  stop(): void {
    if (this.life?.state !== "up") return;
    this.world.say(`${this.life.name} is stopped`);
    this.life.stop();
  }

  /** Like `stop`, but its monotonic clock and its timers stop too. */
  sleep(): void {
    if (this.life?.state !== "up") return;
    this.world.say(`${this.life.name} falls asleep`);
    this.life.sleep();
  }

  resume(): void {
    if (this.life?.state !== "stopped") return;
    this.world.say(`${this.life.name} goes on`);
    this.life.resume();
  }

  setWallClock(byMs: number): void {
    this.world.say(`${this.name} wall clock set by ${byMs}ms`);
    this.clock.wallOffsetMs += byMs;
  }
}

/** What runs on a machine between a boot and a crash. Everything it waits for is tied to it (S2). */
export class Life {
  readonly machine: Machine;
  readonly number: number;
  state: "up" | "stopped" | "dead" = "up";
  readonly clock: Clock;
  readonly #bootedAtMs: number;
  /** When it was last stopped. */
  #stoppedAtMs = 0;
  /** The total of all earlier stops. */
  #stoppedMs = 0;
  #isAsleep = false;
  /** The total of all earlier sleeps. */
  #sleptMs = 0;
  #wokeAtMs = Number.NEGATIVE_INFINITY;
  /** The clock's next check for a sleep. */
  #look: { readonly afterMs: number; readonly run: () => void } | undefined;
  readonly #deferred: (() => void)[] = [];
  readonly #mourners = new Set<() => void>();

  constructor(machine: Machine, number: number) {
    this.machine = machine;
    this.number = number;
    this.#bootedAtMs = machine.world.nowMs;
    this.clock = this.#makeClock();
  }

  get name(): string {
    return `${this.machine.name}#${this.number}`;
  }

  /** Schedules in this life, after this much world time. */
  after(worldMs: number, run: () => void): () => void {
    return this.machine.world.after(worldMs, this, run);
  }

  defer(run: () => void): void {
    this.#deferred.push(run);
  }

  /** How long it has run, in world time, without the times when it was stopped. */
  get ranMs(): number {
    const untilMs = this.state === "stopped" ? this.#stoppedAtMs : this.machine.world.nowMs;
    return untilMs - this.#bootedAtMs - this.#stoppedMs;
  }

  stop(): void {
    this.state = "stopped";
    this.#stoppedAtMs = this.machine.world.nowMs;
  }

  sleep(): void {
    this.stop();
    this.#isAsleep = true;
  }

  resume(): void {
    const stoppedMs = this.machine.world.nowMs - this.#stoppedAtMs;
    this.state = "up";
    this.#stoppedMs += stoppedMs;
    for (const run of this.#deferred.splice(0)) this.after(0, run);
    if (this.#isAsleep) this.#wake(stoppedMs);
  }

  #wake(sleptMs: number): void {
    this.#isAsleep = false;
    this.#sleptMs += sleptMs;
    this.#wokeAtMs = this.machine.world.nowMs;
    const look = this.#look;
    this.#look = undefined;
    if (look) this.after(look.afterMs, look.run);
  }

  /** It woke so recently that nothing on it can have noticed the sleep yet. */
  get isDrowsy(): boolean {
    return this.machine.world.nowMs - this.#wokeAtMs <= drowsyMs;
  }

  /** Called when the life ends; the world uses it to break connections. */
  onEnd(run: () => void): () => void {
    this.#mourners.add(run);
    return () => this.#mourners.delete(run);
  }

  end(): void {
    if (this.state === "dead") return;
    this.state = "dead";
    this.#deferred.length = 0;
    for (const run of this.#mourners) run();
    this.#mourners.clear();
  }

  /** The product's own clock, on a machine whose raw clocks are the world's. */
  #makeClock(): Clock {
    const { world, clock } = this.machine;
    const bootMs = (): number => clock.bootMonotonicMs + (world.nowMs - this.#bootedAtMs) * clock.rate;
    const awakeMs = (): number => {
      const asleepMs = this.#sleptMs + (this.#isAsleep ? world.nowMs - this.#stoppedAtMs : 0);
      return bootMs() - asleepMs * clock.rate;
    };
    const after = (ms: number, run: () => void): (() => void) => {
      const dueMs = awakeMs() + ms;
      const fire = (): void => {
        const leftMs = dueMs - awakeMs();
        if (leftMs > tickMs) cancel = wait(leftMs);
        else run();
      };
      const wait = (forMs: number) => this.after(forMs > 0 ? Math.max(tickMs, forMs) / clock.rate : 0, fire);
      let cancel = wait(ms);
      return () => cancel();
    };
    const machine = {
      awakeMs,
      wallMs: () => Math.floor(epochMs + world.nowMs * clock.rate + clock.wallOffsetMs),
      bootMs: () => Math.floor(bootMs() / 10) * 10,
      after,
      // A check finds something only after a sleep. The others would be most of the world's events.
      afterIfUp: (ms: number, run: () => void) => void (this.#look = { afterMs: ms, run }),
    };
    return bootClock(machine);
  }
}

/** The wall clock's reading when a world begins: any date, as long as it is always the same. */
export const epochMs = 1_800_000_000_000;

export const reasonOf = (signal: AbortSignal | undefined): Error =>
  signal?.reason instanceof Error ? signal.reason : new Fault("unavailable", "wait", { why: "aborted" });

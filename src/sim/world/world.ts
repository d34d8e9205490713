/**
 * The simulated world: one queue of future events, one clock behind all clocks, and machines that live, stop, crash and
 * come back. The code under test is the real one; it only ever waits for what the world provides.
 *
 * S1 One event runs at a time, and every promise it settles is followed to its end before the next event: the turn ends
 * with a `setImmediate`, which Node runs only when no microtask is left.
 * S2 Whatever a life of a machine has scheduled is dropped when that life ends: nothing of it runs again.
 * S3 A stopped machine keeps overdue events, in order, and gets them when it continues; its clocks run meanwhile.
 */
import type { Random } from "#base/random.ts";
import { Heap } from "./heap.ts";
import { type Life, Machine, type MachineClock } from "./machine.ts";
import { forbidRealTime } from "./real-time.ts";
import type { Trace } from "#sim/trace.ts";
import { Violation } from "#sim/check/violation.ts";

type Event = {
  readonly atMs: number;
  readonly order: number;
  readonly life: Life | undefined;
  run: (() => void) | undefined;
};

const turnsPerRound = 64;
/** More events than this at one instant mean a loop that waits for nothing: it would run until the memory is full. */
const turnsPerInstantMax = 200_000;

export class World {
  readonly random: Random;
  readonly trace: Trace;
  nowMs = 0;
  turns = 0;
  readonly machines = new Map<string, Machine>();
  readonly #queue = new Heap<Event>();
  #order = 0;
  #turnsThisInstant = 0;
  #violation: Violation | undefined;

  constructor(random: Random, trace: Trace) {
    this.random = random;
    this.trace = trace;
  }

  get violation(): Violation | undefined {
    return this.#violation;
  }

  /** The first one counts: later ones may be its consequences. The run stops at the end of the turn. */
  violate(invariant: string, what: string, cause?: unknown): void {
    if (this.#violation !== undefined) return;
    this.#violation = new Violation(invariant, what, this.nowMs, cause);
    this.say(`VIOLATION ${this.#violation.message}`);
  }

  say(line: string): void {
    this.trace.line(`${Math.round(this.nowMs * 1_000) / 1_000} ${line}`);
  }

  machine(name: string, clock: MachineClock): Machine {
    const machine = new Machine(this, name, clock);
    this.machines.set(name, machine);
    return machine;
  }

  /** Runs once after `delayMs` of world time, in the given life (undefined: the world's own). The result cancels it. */
  after(delayMs: number, life: Life | undefined, run: () => void): () => void {
    return this.at(this.nowMs + Math.max(0, delayMs), life, run);
  }

  /** The same at an instant: what is due at one instant happens in the order of these calls. */
  at(atMs: number, life: Life | undefined, run: () => void): () => void {
    const event: Event = { atMs, order: (this.#order += 1), life, run };
    this.#queue.push(event);
    return () => {
      event.run = undefined;
    };
  }

  /** Runs the world until `done` returns true (true) or the time is up (false). Throws the first violation. */
  async run(untilMs: number, done: () => boolean = () => false): Promise<boolean> {
    const real = forbidRealTime((call) => this.violate("determinism", `${call} was called inside the world`));
    const caught = (error: unknown) => this.violate("unhandled rejection", describe(error), error);
    const others = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", caught);
    let finished: boolean;
    try {
      finished = await new Promise<boolean>((resolve) => {
        let over = false;
        const end = (result: boolean): void => {
          over = true;
          resolve(result);
        };
        const turn = (): void => {
          if (over) return;
          if (this.#violation !== undefined) return end(false);
          if (done()) return end(true);
          if (!this.#next(untilMs)) end(done());
        };
        // Node runs all microtasks between two immediates, so many turns fit into one round of its event loop.
        const round = (): void => {
          turn();
          if (over) return;
          for (let i = 1; i < turnsPerRound; i += 1) real.setImmediate(turn);
          real.setImmediate(round);
        };
        real.setImmediate(round);
      });
    } finally {
      process.removeAllListeners("unhandledRejection");
      for (const other of others) process.on("unhandledRejection", other);
      real.restore();
    }
    if (this.#violation !== undefined) throw this.#violation;
    return finished;
  }

  #next(untilMs: number): boolean {
    for (;;) {
      const event = this.#queue.pop();
      if (event === undefined) return false;
      if (event.run === undefined || event.life?.state === "dead") continue;
      if (event.atMs > untilMs) {
        this.#queue.push(event);
        this.nowMs = untilMs;
        return false;
      }
      if (event.atMs > this.nowMs) this.#turnsThisInstant = 0;
      this.nowMs = Math.max(this.nowMs, event.atMs);
      if ((this.#turnsThisInstant += 1) > turnsPerInstantMax)
        this.violate("progress", `time stands still: ${turnsPerInstantMax} events at one instant`);
      if (event.life?.state === "stopped") {
        event.life.defer(() => event.run?.());
        continue;
      }
      this.turns += 1;
      const run = event.run;
      event.run = undefined;
      try {
        run();
      } catch (error) {
        this.violate("exception", describe(error), error);
      }
      return true;
    }
  }
}

const describe = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));

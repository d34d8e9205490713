/**
 * The worker: takes claims from shards as it has room, keeps them alive, runs them, and says how they ended.
 * Time, chance, shards, bytes and processes all come in from outside, so the simulator runs this very code.
 */
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Granted } from "#shard/client/executor.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { Backoff } from "#shard/router/backoff.ts";
import { endingOf, tell, type AttemptPorts } from "./attempt.ts";
import { FormerClaims } from "./former-claims.ts";
import { Holding } from "./holding.ts";
import { Renewals } from "./renewal.ts";
import type { Resume } from "./runner.ts";
import { Rumours, type WorkSources } from "./sources.ts";
import { Spares } from "./spares.ts";
import { Visits } from "./visits.ts";
import { workerDefaults, type WorkerOptions, type WorkerPorts } from "./worker-options.ts";

export type Worker = {
  /** Works until it is drained, or until the signal: then everything stops at once and nothing more is said. */
  run(signal: AbortSignal): Promise<void>;
  /** Takes no more work; lets what runs go on for the time, then gives it back. Resolves when nothing is left. */
  drain(forMs: number): Promise<void>;
  /** Takes no more work until `resume`; what runs goes on. Resolves when nothing more can come. */
  hold(): Promise<void>;
  resume(): void;
  /** Stops what runs, so that others can do it. */
  giveBack(): void;
  status(): WorkerStatus;
};

export type WorkerStatus = {
  readonly running: number;
  /** Attempts that have ended, and whose shard has yet to hear of it. */
  readonly telling: number;
  readonly slots: number;
  readonly draining: boolean;
};

export const createWorker = (ports: WorkerPorts): Worker => new PollingWorker(ports);

class PollingWorker implements Worker {
  readonly #ports: WorkerPorts;
  readonly #options: WorkerOptions;
  readonly #log: (line: string) => void;
  readonly #visits: Visits;
  readonly #crash = new AbortController();
  /** Ends the worker; what runs goes on. */
  readonly #leave = new AbortController();
  /** Ends the asking for work: for good when the worker leaves, or until it is resumed. */
  #ask = new AbortController();
  readonly #renewals: Renewals;
  readonly #attempts = new Set<Promise<void>>();
  /** Attempts that have ended, and whose shard has yet to be told. */
  readonly #endings = new Set<Promise<void>>();
  readonly #uses = new WeakMap<Holding, number>();
  /** Ends the telling: at a crash, or when a drained worker has waited long enough. */
  readonly #tell = new AbortController();
  readonly #reserving = new Set<ShardId>();
  readonly #former: FormerClaims;
  /** Undefined where every shard is asked by itself. */
  readonly #rumours: Rumours | undefined;
  #waiting: (() => void)[] = [];
  readonly #spares: Spares;

  constructor(ports: WorkerPorts) {
    this.#ports = ports;
    this.#options = { ...workerDefaults, ...ports.options };
    this.#log = ports.log ?? (() => {});
    this.#visits = new Visits(ports.shards, ports.random);
    const { client, clock, executor } = ports;
    this.#leave.signal.addEventListener("abort", () => this.#wakePollers(), { once: true });
    const isReserving = (shard: ShardId): boolean => this.#reserving.has(shard);
    this.#renewals = new Renewals({ client, clock, executor, isReserving, log: this.#log }, this.#crash.signal);
    const { random, shards } = ports;
    this.#former = new FormerClaims({ renewals: this.#renewals, clock, random, shards, crash: this.#crash.signal });
    const giveBack = (holding: Holding): void => this.#follow(this.#attempts, holding, this.#release(holding));
    this.#spares = new Spares({ clock, countMax: this.#options.pollersMax, giveBack });
    if (ports.sources && ports.shards > this.#options.pollersMax) this.#rumours = this.#listener(ports.sources);
  }

  #listener(sources: WorkSources): Rumours {
    const { clock, random, executor, offers } = this.#ports;
    return new Rumours(
      {
        sources,
        clock,
        random,
        room: () => ({ executor, offers, free: this.#isBusy ? 0 : this.#free }),
        heard: (shard, weight) => this.#visits.learn(shard, weight),
        told: () => this.#wakePollers(),
        pollMs: this.#options.pollMs,
        everyMs: this.#options.lookMs,
        log: this.#log,
      },
      this.#leave.signal,
    );
  }

  status() {
    const [running, telling] = [this.#attempts.size, this.#endings.size];
    return { running, telling, slots: this.#options.slots, draining: this.#ask.signal.aborted };
  }

  async run(signal: AbortSignal): Promise<void> {
    const crash = (): void => {
      this.#crash.abort(signal.reason);
      this.#ask.abort(signal.reason);
      this.#leave.abort(signal.reason);
      this.#tell.abort(signal.reason);
      for (const holding of this.#renewals.holdings) holding.stop("crashed");
    };
    if (signal.aborted) crash();
    signal.addEventListener("abort", crash, { once: true });
    for (const resume of this.#ports.resumes ?? []) this.#resume(resume);
    const pollers = Math.min(this.#ports.shards, this.#options.pollersMax);
    const loops = Array.from({ length: pollers }, () => this.#poll(pollers));
    if (this.#rumours) loops.push(this.#rumours.listen(), this.#former.giveAllBack(this.#leave.signal));
    else if (pollers < this.#ports.shards) loops.push(this.#sweep());
    try {
      await Promise.all(loops);
      await this.#settled();
    } finally {
      signal.removeEventListener("abort", crash);
    }
  }

  async drain(forMs: number): Promise<void> {
    await this.hold();
    this.#leave.abort(new Fault("unavailable", "reserve", { why: "the worker is going away" }));
    const { clock } = this.#ports;
    const stop = clock.after(forMs, () => this.giveBack());
    const giveUp = clock.after(forMs + this.#options.stopMsMax, () =>
      this.#tell.abort(new Fault("unavailable", "tell ending", { why: "the worker is gone" })),
    );
    await this.#settled();
    stop();
    giveUp();
  }

  async hold(): Promise<void> {
    if (this.#ask.signal.aborted) return;
    const interrupted = [...this.#reserving];
    this.#ask.abort(new Fault("unavailable", "reserve", { why: "the worker takes no more work" }));
    this.#spares.giveAllBack();
    this.#rumours?.roomChanged();
    // A reservation that was cut off may have been granted all the same; where nobody answers, its lease ends.
    await Promise.all(interrupted.map((shard) => this.#former.giveBack(shard, 2_000)));
  }

  resume(): void {
    if (this.#leave.signal.aborted || !this.#ask.signal.aborted) return;
    this.#ask = new AbortController();
    this.#wakePollers();
    this.#rumours?.roomChanged();
  }

  giveBack(): void {
    for (const holding of this.#renewals.holdings) holding.stop("drained");
  }

  #wakePollers(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  get #free(): number {
    // A shard that is away for long must not pile up endings without end.
    const tooMany = Math.max(0, this.#endings.size - 10 * this.#options.slots);
    return this.#options.slots - this.#attempts.size - tooMany;
  }

  /** Word of more work is not wanted. */
  get #isBusy(): boolean {
    return this.#ask.signal.aborted || this.#visits.hasReady(this.#reserving);
  }

  async #settled(): Promise<void> {
    while (this.#attempts.size + this.#endings.size > 0) await Promise.all([...this.#attempts, ...this.#endings]);
  }

  /** One of several that ask shards for work, each shard one at a time. */
  async #poll(pollers: number): Promise<void> {
    const { clock, random } = this.#ports;
    const { signal } = this.#leave;
    const backoff = new Backoff({ backoffMs: 100, backoffMsMax: 5_000 }, random);
    while (!signal.aborted) {
      if (this.#free <= 0 || this.#ask.signal.aborted) {
        await new Promise<void>((wake) => this.#waiting.push(wake));
        continue;
      }
      const shard = this.#rumours ? this.#visits.nextReady(this.#reserving) : this.#visits.next(this.#reserving);
      if (this.#rumours && shard === undefined) {
        await new Promise<void>((wake) => this.#waiting.push(wake));
        continue;
      }
      try {
        if (shard === undefined) await clock.sleep(backoff.next(), signal);
        else if (await this.#visit(shard, pollers)) backoff.reset();
        else await clock.sleep(backoff.next(), signal);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
    }
  }

  /** False when the shard could not be asked. */
  async #visit(shard: ShardId, pollers: number): Promise<boolean> {
    const { client, executor, offers } = this.#ports;
    const { signal } = this.#ask;
    const { pollMs } = this.#options;
    this.#reserving.add(shard);
    try {
      if (!(await this.#former.given(shard))) {
        if (this.#rumours) this.#visits.learn(shard, 0);
        return false;
      }
      const waitMs = this.#rumours ? 0 : pollers < this.#ports.shards ? Math.min(pollMs, 500) : pollMs;
      const count = this.#free;
      if (count <= 0) return true;
      const grants = await client.reserve(
        shard,
        { executor, offers, count, waitMs, start: "pure" },
        { deadlineMs: waitMs + (this.#rumours ? 3_000 : 10_000), signal },
      );
      this.#visits.learn(shard, grants.length >= count ? 1 : 0);
      if (grants.length > 0) this.#rumours?.confirmed();
      for (const granted of grants) this.#take(granted);
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      if (!isFault(error) && !isRejected(error)) throw error;
      this.#log(`reserve: ${error.message}`);
      // Whoever owns it next says so again.
      if (this.#rumours) this.#visits.learn(shard, 0);
      return false;
    } finally {
      this.#reserving.delete(shard);
      this.#rumours?.roomChanged();
    }
  }

  /**
   * The request may have been held for longer than the lease is. So time counts from now: nothing is run before its
   * shard has answered once more, to `start`, that it is held; and from then on the lease counts from that question.
   */
  #take(granted: Granted): void {
    const { clock, executor } = this.#ports;
    const holding = new Holding(granted, executor, clock, clock.monotonicMs());
    this.#renewals.add(holding);
    const isTaking = !this.#ask.signal.aborted;
    if (isTaking && this.#free > 0) this.#follow(this.#attempts, holding, this.#attempt(holding));
    else if (!isTaking || !this.#spares.keep(holding)) this.#follow(this.#attempts, holding, this.#release(holding));
  }

  /** Its claim may be gone: the first word of its shard says so, and until then it goes on. */
  #resume({ granted, drop }: Resume): void {
    const { clock, executor } = this.#ports;
    const holding = new Holding(granted, executor, clock, clock.monotonicMs());
    holding.afterwards(drop);
    this.#renewals.add(holding);
    this.#follow(this.#attempts, holding, this.#attempt(holding));
  }

  async #attempt(holding: Holding): Promise<void> {
    const ports = this.#attemptPorts();
    const startedMono = ports.clock.monotonicMs();
    const ending = await endingOf(holding, ports);
    this.#spares.learn(ports.clock.monotonicMs() - startedMono);
    // From here on only words are exchanged: the slot is free for other work.
    this.#follow(this.#endings, holding, tell(holding, ending, ports));
  }

  #runSpares(): void {
    for (let spare = this.#free > 0 ? this.#spares.take() : undefined; spare;) {
      this.#follow(this.#attempts, spare, this.#attempt(spare));
      spare = this.#free > 0 ? this.#spares.take() : undefined;
    }
  }

  async #release(holding: Holding): Promise<void> {
    const options = { deadlineMs: Math.max(1_000, holding.leftMs), signal: this.#crash.signal };
    await this.#ports.client.release(holding.claim, options);
  }

  /** The claim is kept alive until nothing more is done about it. */
  #follow(among: Set<Promise<void>>, holding: Holding, work: Promise<void>): void {
    this.#uses.set(holding, (this.#uses.get(holding) ?? 0) + 1);
    const followed = work
      .catch((error: unknown) => {
        if (!this.#crash.signal.aborted) this.#log(`${holding.granted.taskId}: ${String(error)}`);
      })
      .finally(() => {
        among.delete(followed);
        const uses = (this.#uses.get(holding) ?? 1) - 1;
        this.#uses.set(holding, uses);
        if (uses === 0) this.#renewals.remove(holding);
        this.#runSpares();
        this.#wakePollers();
        this.#rumours?.roomChanged();
      });
    among.add(followed);
  }

  #attemptPorts(): AttemptPorts {
    const { client, blobs, clock, runners, planners } = this.#ports;
    const { stopMsMax, tellMsMax } = this.#options;
    return { client, blobs, clock, runners, planners, stopMsMax, tellMsMax, log: this.#log, signal: this.#tell.signal };
  }

  /** With more shards than can be asked at once: looks which of them have work. */
  async #sweep(): Promise<void> {
    const { client, clock, shards } = this.#ports;
    const { signal } = this.#leave;
    for (let shard = 0; !signal.aborted; shard = (shard + 1) % shards) {
      const stats = await client.stats(shard, { deadlineMs: 1_000, signal }).catch(() => undefined);
      if (stats) this.#visits.learn(shard, stats.readyWeight);
      await clock.sleep(this.#options.sweepMs / shards, signal).catch(() => {});
    }
  }
}

/**
 * The worker: reserves claims from shards for its free slots, renews them, runs their tasks and reports how they ended.
 * Time, randomness, shards, bytes and processes are injected, so the simulator runs this same code.
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
import { WorkHints, type WorkSources } from "#worker/visits/sources.ts";
import { Spares } from "#worker/visits/spares.ts";
import { Visits } from "#worker/visits/visits.ts";
import { workerDefaults, type WorkerOptions, type WorkerPorts } from "./worker-options.ts";

export type Worker = {
  /** Works until it is drained, or until the signal: then everything stops at once and nothing more is reported. */
  run(signal: AbortSignal): Promise<void>;
  /**
   * Takes no more work; lets running attempts continue for the time, then releases them. Resolves when nothing is left.
   */
  drain(forMs: number): Promise<void>;
  /** Takes no more work until `resume`; running attempts continue. Resolves when no more claims can arrive. */
  hold(): Promise<void>;
  resume(): void;
  /** Stops running attempts, so that other workers can run the tasks. */
  giveBack(): void;
  status(): WorkerStatus;
};

export type WorkerStatus = {
  readonly running: number;
  /** Stages that are being planned, beside the slots. */
  readonly planning: number;
  /** Attempts that have ended but are not reported to their shard yet. */
  readonly telling: number;
  readonly slots: number;
  readonly draining: boolean;
};

/** So many reports may be under way, however few slots there are: each is small, and they go together. */
const endingsMin = 256;
const inLineEvery = 4;

export class PollingWorker implements Worker {
  readonly #ports: WorkerPorts;
  readonly #options: WorkerOptions;
  readonly #log: (line: string) => void;
  readonly #visits: Visits;
  readonly #crash = new AbortController();
  /** Ends the worker's loops; running attempts continue. */
  readonly #leave = new AbortController();
  /** Aborts requests for work: for good when the worker leaves, or until it is resumed. */
  #ask = new AbortController();
  readonly #renewals: Renewals;
  readonly #attempts = new Set<Promise<void>>();
  /** Attempts that have ended but are not reported to their shard yet. */
  readonly #endings = new Set<Promise<void>>();
  readonly #uses = new WeakMap<Holding, number>();
  /** Aborts reporting: on a crash, or when a drained worker has waited long enough. */
  readonly #tell = new AbortController();
  readonly #reserving = new Set<ShardId>();
  readonly #former: FormerClaims;
  /** Undefined where a request for work is held at each shard. */
  readonly #hints: WorkHints | undefined;
  #waiting: (() => void)[] = [];
  readonly #spares: Spares;
  #reservations = 0;

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
    const { slots, pollersMax: countMin, aheadMax } = this.#options;
    this.#spares = new Spares({ clock, slots, countMin, aheadMax, giveBack });
    if (ports.shards > this.#options.heldShardsMax) this.#hints = this.#listener(ports.sources);
  }

  #listener(sources: WorkSources): WorkHints {
    const { clock, random, executor, offers } = this.#ports;
    return new WorkHints(
      {
        sources,
        clock,
        random,
        room: () => ({ executor, offers, free: this.#isBusy ? 0 : this.#free }),
        heard: (shard, weight) => this.#visits.learn(shard, weight),
        onReady: () => this.#wakePollers(),
        pollMs: this.#options.pollMs,
        everyMs: this.#options.lookMs,
        log: this.#log,
      },
      this.#leave.signal,
    );
  }

  status() {
    const [running, telling] = [this.#attempts.size, this.#endings.size];
    return { running, planning: 0, telling, slots: this.#options.slots, draining: this.#ask.signal.aborted };
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
    const { shards } = this.#ports;
    const pollers = this.#hints ? Math.min(shards, this.#options.pollersMax) : shards;
    const loops = Array.from({ length: pollers }, () => this.#poll());
    if (this.#hints) loops.push(this.#hints.listen(), this.#former.giveAllBack(this.#leave.signal));
    try {
      await Promise.all(loops);
      await this.#settled();
    } finally {
      signal.removeEventListener("abort", crash);
    }
  }

  async drain(forMs: number): Promise<void> {
    await this.hold();
    this.#leave.abort(new Fault("unavailable", "reserve", { why: "the worker is leaving" }));
    const { clock } = this.#ports;
    const stop = clock.after(forMs, () => this.giveBack());
    const stopMsMax = Math.max(
      this.#options.stopMsMax,
      ...this.#renewals.holdings.map(({ granted }) => granted.stopMs ?? 0),
    );
    const giveUp = clock.after(forMs + stopMsMax, () =>
      this.#tell.abort(new Fault("unavailable", "report the end of an attempt", { why: "the worker has stopped" })),
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
    this.#hints?.roomChanged();
    // An aborted reservation may still have been granted: release it. If the shard does not answer, the lease ends it.
    await Promise.all(interrupted.map((shard) => this.#former.giveBack(shard, 2_000)));
  }

  resume(): void {
    if (this.#leave.signal.aborted || !this.#ask.signal.aborted) return;
    this.#ask = new AbortController();
    this.#wakePollers();
    this.#hints?.roomChanged();
  }

  giveBack(): void {
    for (const holding of this.#renewals.holdings) holding.stop("drained");
  }

  #wakePollers(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  get #free(): number {
    // A shard that is away for long must not pile up unreported ends.
    const tooMany = Math.max(0, this.#endings.size - Math.max(endingsMin, 10 * this.#options.slots));
    return this.#options.slots - this.#attempts.size - tooMany;
  }

  /** How many claims to ask a shard for: beyond free slots only where there is work for certain. */
  #wantedFrom(isReady: boolean): number {
    const free = this.#free;
    const ahead = isReady && free > -this.#options.slots ? this.#spares.wanted : 0;
    return Math.max(0, free) + ahead;
  }

  /** Whether the worker wants no hints about more work. */
  get #isBusy(): boolean {
    return this.#ask.signal.aborted || this.#visits.hasReady(this.#reserving);
  }

  /** Whether some shard should be asked for work. */
  get #hasRoom(): boolean {
    return !this.#ask.signal.aborted && this.#wantedFrom(this.#visits.hasReady(this.#reserving)) > 0;
  }

  async #settled(): Promise<void> {
    while (this.#attempts.size + this.#endings.size > 0) await Promise.all([...this.#attempts, ...this.#endings]);
  }

  /** One of several that ask shards for work, each shard one at a time. */
  async #poll(): Promise<void> {
    const { clock, random } = this.#ports;
    const { signal } = this.#leave;
    const backoff = new Backoff({ backoffMs: 100, backoffMsMax: 5_000 }, random);
    while (!signal.aborted) {
      if (!this.#hasRoom) {
        await new Promise<void>((wake) => this.#waiting.push(wake));
        continue;
      }
      const shard = this.#hints ? this.#visits.nextReady(this.#reserving) : this.#visits.next(this.#reserving);
      if (this.#hints && shard === undefined) {
        await new Promise<void>((wake) => this.#waiting.push(wake));
        continue;
      }
      try {
        if (shard === undefined) await clock.sleep(backoff.next(), signal);
        else if (await this.#visit(shard)) backoff.reset();
        else await clock.sleep(backoff.next(), signal);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
    }
  }

  /** False when the shard could not be asked. */
  async #visit(shard: ShardId): Promise<boolean> {
    const { client, executor, offers } = this.#ports;
    const { signal } = this.#ask;
    this.#reserving.add(shard);
    try {
      if (!(await this.#former.given(shard))) {
        if (this.#hints) this.#visits.learn(shard, 0);
        return false;
      }
      // What is taken ahead of free slots is not waited for: another worker may have a free one.
      const waitMs = this.#hints || this.#free <= 0 ? 0 : this.#options.pollMs;
      const count = this.#wantedFrom(waitMs === 0 || this.#visits.isReady(shard));
      if (count <= 0) return true;
      const sentAtMs = this.#ports.clock.monotonicMs();
      const grants = await client.reserve(
        shard,
        { executor, offers, prefer: this.#preferred(), count, waitMs, start: "pure" },
        { deadlineMs: waitMs + (this.#hints ? 3_000 : 10_000), signal },
      );
      this.#visits.learn(shard, grants.length >= count ? 1 : 0);
      if (grants.length > 0) this.#hints?.confirmed();
      for (const granted of grants) this.#take(granted, sentAtMs);
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      if (!isFault(error) && !isRejected(error)) throw error;
      this.#log(`reserve: ${error.message}`);
      // The shard's next owner reports its work again.
      if (this.#hints) this.#visits.learn(shard, 0);
      return false;
    } finally {
      this.#reserving.delete(shard);
      this.#hints?.roomChanged();
    }
  }

  /**
   * What lies near this worker first; now and then the first in line, so that nothing is passed by for ever (K10).
   */
  #preferred(): readonly string[] {
    this.#reservations += 1;
    return this.#reservations % inLineEvery === 0 ? [] : [this.#ports.executor];
  }

  /**
   * The shard may have held the request longer than the lease. Then nothing runs until it has confirmed the claim
   * once more, by answering `start`, and the lease counts from when that request was sent. A claim that came soon, and
   * started, needs no more words (ADR 0250).
   */
  #take(granted: Granted, sentAtMs: number): void {
    const { clock, executor } = this.#ports;
    const nowMs = clock.monotonicMs();
    const isSure = granted.effects === "pure" && nowMs - sentAtMs < granted.leaseMs / 4;
    const holding = new Holding(granted, executor, clock, isSure ? sentAtMs : nowMs, isSure);
    this.#renewals.add(holding);
    const isTaking = !this.#ask.signal.aborted;
    if (isTaking && this.#free > 0) this.#follow(this.#attempts, holding, this.#attempt(holding));
    else if (!isTaking || !this.#spares.keep(holding)) this.#follow(this.#attempts, holding, this.#release(holding));
  }

  /** Its claim may be gone: the shard's first answer says so, and until then the attempt continues. */
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
    // Only the report is left: the slot is free for other work.
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

  /** Renews the claim until the attempt is reported or abandoned. */
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
        if (this.#hasRoom) this.#wakePollers();
        this.#hints?.roomChanged();
      });
    among.add(followed);
  }

  #attemptPorts(): AttemptPorts {
    const { client, blobs, clock, runners, planners, access } = this.#ports;
    const { stopMsMax, tellMsMax } = this.#options;
    const parts = { client, blobs, clock, runners, planners, access };
    return { ...parts, stopMsMax, tellMsMax, log: this.#log, signal: this.#tell.signal };
  }
}

/**
 * One claim that the worker holds. Its time counts on the worker's monotonic clock from before the request that granted
 * or renewed it was sent, so that it expires here no later than at the owner.
 *
 * W1 An attempt whose claim can no longer be valid is stopped: at the lease for tasks with outside effects, after the
 * task's grace for the others.
 */
import { afterAwake, type Clock } from "#base/clock.ts";
import type { NumberedSignal } from "#kernel/model/model.ts";
import type { ClaimRef, Granted } from "#shard/client/executor.ts";
import { slew } from "#shard/host/kernel-clock.ts";

/** Why an attempt is stopped before it ends by itself. */
export type StopReason =
  /** The job is being cancelled: stop, then report it. */
  | "cancelled"
  /** The shard said that the claim is gone. */
  | "lost"
  /** No answer for lease and grace (W1). */
  | "lease-ran-out"
  | "timed-out"
  /** The worker is leaving. */
  | "drained"
  /** The worker was stopped abruptly. */
  | "crashed";

export class Stopped extends Error {
  readonly why: StopReason;
  constructor(why: StopReason) {
    super(`the attempt was stopped: ${why}`);
    this.name = "Stopped";
    this.why = why;
  }
}

type SignalListener = (signal: NumberedSignal) => void | Promise<void>;

export class Holding {
  readonly granted: Granted;
  readonly claim: ClaimRef;
  /** The shard said lately that the claim is held and its task started. */
  readonly isSure: boolean;
  readonly #clock: Clock;
  readonly #abort = new AbortController();
  #leaseUntilMs: number;
  #stopTimer: () => void = () => {};
  #afterwards: (() => void)[] | undefined = [];
  readonly #signals: NumberedSignal[] = [];
  #listener: SignalListener | undefined;
  /** The number of the last signal that the listener has dealt with. */
  #dealtWith = 0;
  #dealing: Promise<void> = Promise.resolve();

  constructor(granted: Granted, executor: string, clock: Clock, sentAtMs: number, isSure = false) {
    this.granted = granted;
    this.isSure = isSure;
    this.claim = { executor, taskId: granted.taskId, token: granted.token };
    this.#clock = clock;
    this.#leaseUntilMs = sentAtMs + granted.leaseMs;
    this.#arm();
  }

  get key(): string {
    return keyOf(this.claim);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get stopped(): StopReason | undefined {
    return this.#abort.signal.aborted ? (this.#abort.signal.reason as Stopped).why : undefined;
  }

  /** How long its end can still be reported. */
  get leftMs(): number {
    return this.#untilMs - this.#clock.monotonicMs();
  }

  /** The owner confirmed the claim, in answer to a request sent at that time. */
  renewed(sentAtMs: number, leaseMs: number): void {
    this.#leaseUntilMs = Math.max(this.#leaseUntilMs, sentAtMs + leaseMs);
    this.#arm();
  }

  stop(why: StopReason): void {
    if (!this.#abort.signal.aborted) this.#abort.abort(new Stopped(why));
  }

  /** The number of the last signal that its listener has dealt with: with the next renewal it is acknowledged. */
  get heard(): number {
    return this.#listener ? this.#dealtWith : this.#signals.length;
  }

  /** Signals to the task's stage, as a renewal brought them: each counts once, in order. */
  hear(signals: readonly NumberedSignal[]): void {
    for (const signal of signals) {
      if (signal.number !== this.#signals.length + 1) continue;
      this.#signals.push(signal);
      this.#deal(signal);
    }
  }

  /** From the first on, also those that arrived before. */
  onSignal(listener: SignalListener): void {
    this.#listener = listener;
    for (const signal of this.#signals) this.#deal(signal);
  }

  #deal(signal: NumberedSignal): void {
    const listener = this.#listener;
    if (!listener) return;
    this.#dealing = this.#dealing.then(async () => {
      if (signal.number !== this.#dealtWith + 1) return;
      try {
        await listener(signal);
        this.#dealtWith = signal.number;
      } catch {
        this.#signals.length = this.#dealtWith; // not acknowledged: the next renewal brings it again
      }
    });
  }

  /** Called when nothing more will be reported about the claim. */
  afterwards(done: () => void): void {
    if (this.#afterwards) this.#afterwards.push(done);
    else done();
  }

  /** The attempt has ended; cancels all timers. */
  [Symbol.dispose](): void {
    this.#stopTimer();
    const done = this.#afterwards ?? [];
    this.#afterwards = undefined;
    for (const each of done) each();
  }

  get #untilMs(): number {
    const { effects, graceMs, leaseMs } = this.granted;
    return this.#leaseUntilMs + (effects === "outside" ? -marginMsOf(leaseMs) : graceMs);
  }

  #arm(): void {
    this.#stopTimer();
    const leftMs = Math.max(0, this.leftMs);
    const stop = (): void => this.stop("lease-ran-out");
    // A task without outside effects is run twice at worst. Its owner may have slept on the same machine, and will
    // renew it.
    const isOutside = this.granted.effects === "outside";
    this.#stopTimer = isOutside ? this.#clock.after(leftMs, stop) : afterAwake(this.#clock, leftMs, stop);
  }
}

/**
 * How long before its lease ends an attempt with outside effects is stopped. The owner counts the lease in kernel time,
 * which may run faster than our clock by `slew`; besides, killing takes time, and clocks drift.
 */
export const marginMsOf = (leaseMs: number): number => leaseMs - leaseMs / (1 + slew) + Math.min(1_000, leaseMs / 20);

/**
 * W1 for a node that hangs, sleeps or dies: how long an attempt's processes may continue on their own. A task with
 * outside effects ends when its claim would have expired by `leftMs`, and dies with its node; others continue for a
 * lease, in which the node may restart and take them over.
 */
export const leasesOf = ({ effects, leaseMs }: Pick<Granted, "effects" | "leaseMs">, leftMs?: () => number) => ({
  leaseMs: leaseMs / 2,
  orphanMs: effects === "outside" ? 0 : leaseMs,
  ...(effects === "outside" && leftMs ? { leftMs } : {}),
});

export const keyOf = ({ taskId, token }: { readonly taskId: string; readonly token: number }): string =>
  `${taskId}#${token}`;

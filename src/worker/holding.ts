/**
 * One claim as the worker holds it. Its time is counted on the worker's own monotonic clock, from before the message
 * that granted or renewed it was sent, so that it ends here no later than at the owner.
 *
 * W1 An attempt whose claim can no longer be good is stopped: with the lease for tasks that change the world, after
 *    the task's grace for the others.
 */
import { afterAwake, type Clock } from "#base/clock.ts";
import type { ClaimRef, Granted } from "#shard/client/executor.ts";
import { slew } from "#shard/host/kernel-clock.ts";

/** Why an attempt is stopped before it ends by itself. */
export type StopReason =
  /** The job is being cancelled: stop, then say so. */
  | "cancelled"
  /** Someone whose word counts said that the claim is gone. */
  | "lost"
  /** Nothing was heard for lease and grace (W1). */
  | "lease-ran-out"
  | "timed-out"
  /** The worker is going away. */
  | "drained"
  /** The worker was stopped without ceremony. */
  | "crashed";

export class Stopped extends Error {
  readonly why: StopReason;
  constructor(why: StopReason) {
    super(`the attempt was stopped: ${why}`);
    this.name = "Stopped";
    this.why = why;
  }
}

export class Holding {
  readonly granted: Granted;
  readonly claim: ClaimRef;
  readonly #clock: Clock;
  readonly #abort = new AbortController();
  #leaseUntilMs: number;
  #stopTimer: () => void = () => {};
  #afterwards: (() => void)[] | undefined = [];

  constructor(granted: Granted, executor: string, clock: Clock, sentAtMs: number) {
    this.granted = granted;
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

  /** How long there is still something to say about it. */
  get leftMs(): number {
    return this.#untilMs - this.#clock.monotonicMs();
  }

  /** The owner said that it is held, in answer to a message sent at the time. */
  renewed(sentAtMs: number, leaseMs: number): void {
    this.#leaseUntilMs = Math.max(this.#leaseUntilMs, sentAtMs + leaseMs);
    this.#arm();
  }

  stop(why: StopReason): void {
    if (!this.#abort.signal.aborted) this.#abort.abort(new Stopped(why));
  }

  /** Done when nothing more is said of the claim. */
  afterwards(done: () => void): void {
    if (this.#afterwards) this.#afterwards.push(done);
    else done();
  }

  /** It has ended; no timer outlives it. */
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
    // Work without outside effects is done twice at worst. Its owner may have slept on the same machine, and renews it.
    const isOutside = this.granted.effects === "outside";
    this.#stopTimer = isOutside ? this.#clock.after(leftMs, stop) : afterAwake(this.#clock, leftMs, stop);
  }
}

/**
 * How long before its lease ends here an attempt with outside effects is stopped. The owner counts the lease in kernel
 * time, which may run faster than the clock here by `slew`; besides, killing takes time, and clocks drift.
 */
export const marginMsOf = (leaseMs: number): number => leaseMs - leaseMs / (1 + slew) + Math.min(1_000, leaseMs / 20);

/**
 * W1 for a node that hangs, sleeps or dies: how long what an attempt runs may go on by itself. What changes the world
 *    ends when `leftMs` said that its claim would, and dies with its node; what does not goes on for a lease, in which
 *    the node's next life may come back for it.
 */
export const leasesOf = ({ effects, leaseMs }: Pick<Granted, "effects" | "leaseMs">, leftMs?: () => number) => ({
  leaseMs: leaseMs / 2,
  orphanMs: effects === "outside" ? 0 : leaseMs,
  ...(effects === "outside" && leftMs ? { leftMs } : {}),
});

export const keyOf = ({ taskId, token }: { readonly taskId: string; readonly token: number }): string =>
  `${taskId}#${token}`;

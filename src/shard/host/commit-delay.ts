/**
 * The pause between two appends. An append costs the same for one record as for thirty, and where several tasks are
 * running, the next record is on its way: so the append waits for it, but never long, and never if no other task is
 * running.
 *
 * H4 An append is delayed only while fewer requests wait for it than tasks are still claimed, for no longer than six
 * times the duration of the last append, and never beyond ten milliseconds after that append ended.
 */
import type { Clock } from "#base/clock.ts";

const timesLast = 6;
const restMsMax = 10;
/** One append for this many records is cheap enough. */
const recordsEnough = 32;

/** Contents of the next append: records, and the callers that wait for it to return. */
export type Gathered = { readonly records: number; readonly waiting: number };

export class CommitDelay {
  readonly #clock: Clock;
  /** Called when the pause is over and something may be waiting. */
  readonly #over: () => void;
  #beganMono = 0;
  #untilMono = 0;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, over: () => void) {
    this.#clock = clock;
    this.#over = over;
  }

  appendBegins(): void {
    this.#stop();
    this.#beganMono = this.#clock.monotonicMs();
  }

  appendEnded(): void {
    const nowMono = this.#clock.monotonicMs();
    this.#untilMono = nowMono + Math.min(restMsMax, timesLast * (nowMono - this.#beganMono));
  }

  /** Whether the waiting records should wait for more. If so, `over` is called when the pause ends. */
  isWorthIt(gathered: () => Gathered, claims: () => number): boolean {
    const leftMs = this.#untilMono - this.#clock.monotonicMs();
    if (leftMs <= 0) return false;
    const { records, waiting } = gathered();
    if (records >= recordsEnough || waiting >= claims()) return false;
    this.#cancel ??= this.#clock.after(leftMs, () => {
      this.#stop();
      this.#over();
    });
    return true;
  }

  #stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#untilMono = 0;
  }
}

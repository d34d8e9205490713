/**
 * The rest between two appends. An append costs the same for one record as for thirty, and where several tasks are
 * being worked on, the next record is on its way: so it is waited for, but never long, and never where nobody else is
 * at work.
 *
 * H4 An append is put off only while fewer wait for it than tasks are claimed still, for no longer than six times what
 *    the last append took, and never beyond ten milliseconds after its end.
 */
import type { Clock } from "#base/clock.ts";

const timesLast = 6;
const restMsMax = 10;
/** One append for so many is cheap enough. */
const recordsEnough = 32;

/** For the next append: records, and those who are told nothing before it has returned. */
export type Gathered = { readonly records: number; readonly waiting: number };

export class CommitRest {
  readonly #clock: Clock;
  /** It is over, and something may be waiting. */
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

  /** Whether those that wait should wait for more. If so, it is told when that is over. */
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

/**
 * How long to wait after a failure before the same is tried again. Pure.
 *
 * PT1 Each failure doubles the pause, up to a limit; something new to try is tried at once.
 */
const pauseMsMin = 500;
const pauseMsMax = 60_000;

export class Patience {
  #about = "";
  #pauseMs = 0;
  #untilMs = -Infinity;

  failed(about: string, nowMs: number): void {
    this.#pauseMs = about === this.#about ? Math.min(pauseMsMax, this.#pauseMs * 2) : pauseMsMin;
    this.#about = about;
    this.#untilMs = nowMs + this.#pauseMs;
  }

  mayTry(about: string, nowMs: number): boolean {
    return about !== this.#about || nowMs >= this.#untilMs;
  }

  succeeded(): void {
    this.#about = "";
    this.#untilMs = -Infinity;
  }
}

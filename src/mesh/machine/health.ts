/**
 * Lifeguard's local health score: how far this node trusts its own observations. It grows when probes fail although the
 * helpers should have answered, and when accusations had to be refuted; each successful probe lowers it.
 */
export class Health {
  readonly #max: number;
  #score = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** 0 is best. */
  get score(): number {
    return this.#score;
  }

  add(delta: number): void {
    this.#score = Math.min(this.#max - 1, Math.max(0, this.#score + delta));
  }

  scaled(ms: number): number {
    return ms * (this.#score + 1);
  }
}

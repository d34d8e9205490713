/**
 * Lifeguard's local health: how far this node trusts its own eyes. It grows with probes that fail although the helpers
 * should have said something, and with accusations that had to be refuted; each probe that works brings it down.
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

/**
 * What the peer may still send us, for a stream or the connection (RFC 9113 section 5.2). It opens by what was
 * consumed, not by what was received, so that a slow consumer stops its peer. It grows while it is what holds a
 * fast one back, up to a bound that is also the bound of what can lie here unconsumed.
 */
import type { H2Limits } from "./limits.ts";

export class ReceiveWindow {
  #size: number;
  readonly #sizeMax: number;
  #available: number;
  #consumed = 0;
  #announcedAtMs: number;

  constructor(size: number, sizeMax: number, nowMs: number) {
    this.#size = size;
    this.#sizeMax = sizeMax;
    this.#available = size;
    this.#announcedAtMs = nowMs;
  }

  get size(): number {
    return this.#size;
  }

  get available(): number {
    return this.#available;
  }

  /** False when the peer sends more than it may. */
  take(bytes: number): boolean {
    if (bytes > this.#available) return false;
    this.#available -= bytes;
    return true;
  }

  /** Answers the increment that is due now, or 0: half a window is worth a frame. */
  consume(bytes: number, nowMs: number, limits: H2Limits): number {
    this.#consumed += bytes;
    if (this.#consumed * 2 < this.#size) return 0;
    let increment = this.#consumed;
    if (nowMs - this.#announcedAtMs < limits.windowGrowthMs && this.#size < this.#sizeMax) {
      const grown = Math.min(this.#size * 2, this.#sizeMax);
      increment += grown - this.#size;
      this.#size = grown;
    }
    this.#consumed = 0;
    this.#announcedAtMs = nowMs;
    this.#available += increment;
    return increment;
  }
}

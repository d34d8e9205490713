/**
 * How much the peer may still send us, for a stream or the connection (RFC 9113 section 5.2). It opens by what was
 * consumed, not by what was received, so that a slow consumer stops its peer. It grows while it limits a fast consumer,
 * up to a maximum, which also bounds the unconsumed bytes held here.
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

  /** Returns the increment to send now, or 0: a frame is sent for half a window. */
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

/**
 * Requests that were answered in full before they had ended (RFC 9113 section 8.1). The rest of them is not read.
 * Usually it is on its way already, so it is accepted and checked as always; only a client that goes on for too long,
 * or with too much data, is told to stop.
 */
import type { H2Limits } from "./limits.ts";

/** What a frame means for such a request. */
export type LateVerdict = "goes on" | "has ended" | "breaks a rule" | "is too much";

type LateRequest = {
  readonly sinceMs: number;
  /** Announced by content-length and still to come, or -1. */
  bodyBytesLeft: number;
  bytes: number;
};

export class LateRequests {
  readonly #late = new Map<number, LateRequest>();
  readonly #limits: H2Limits;

  constructor(limits: H2Limits) {
    this.#limits = limits;
  }

  has(id: number): boolean {
    return this.#late.has(id);
  }

  /** False when too many are late already. */
  add(id: number, bodyBytesLeft: number, nowMs: number): boolean {
    if (this.#late.size >= this.#limits.lateRequestsMax) return false;
    this.#late.set(id, { sinceMs: nowMs, bodyBytesLeft, bytes: 0 });
    return true;
  }

  /** DATA of this many bytes; how many of them are padding is unknown without reading it. */
  data(id: number, bytes: number, isPadded: boolean, ends: boolean): LateVerdict | undefined {
    const late = this.#late.get(id);
    if (!late) return undefined;
    late.bytes += bytes;
    if (isPadded) late.bodyBytesLeft = -1;
    else if (late.bodyBytesLeft >= 0) {
      late.bodyBytesLeft -= bytes;
      if (late.bodyBytesLeft < 0) return this.#over(id, "breaks a rule");
    }
    if (ends) return this.#over(id, late.bodyBytesLeft > 0 ? "breaks a rule" : "has ended");
    return late.bytes > this.#limits.lateRequestBytesMax ? this.#over(id, "is too much") : "goes on";
  }

  /** A second header block, valid as trailers or not. */
  trailers(id: number, isWell: boolean): LateVerdict | undefined {
    const late = this.#late.get(id);
    return late && this.#over(id, isWell && late.bodyBytesLeft <= 0 ? "has ended" : "breaks a rule");
  }

  drop(id: number): boolean {
    return this.#late.delete(id);
  }

  /** Removes and returns those whose time is up, in the order in which they came. */
  *overdue(nowMs: number): Generator<number> {
    for (const [id, { sinceMs }] of this.#late) {
      if (nowMs - sinceMs < this.#limits.lateRequestMs) return;
      this.#late.delete(id);
      yield id;
    }
  }

  #over(id: number, verdict: LateVerdict): LateVerdict {
    this.#late.delete(id);
    return verdict;
  }
}

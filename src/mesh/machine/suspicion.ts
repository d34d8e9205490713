/**
 * How long a suspicion lasts (Lifeguard): long while only we hold it, and shorter with each member that confirms it,
 * down to the minimum when enough members have.
 */
import type { MeshTimes } from "./profile.ts";

export type SuspicionSpan = { readonly minMs: number; readonly maxMs: number; readonly confirmationsWanted: number };

export function suspicionSpan(times: MeshTimes, members: number): SuspicionSpan {
  const scale = Math.max(1, Math.log10(Math.max(1, members)));
  const minMs = Math.floor(times.suspicionMult * scale * times.probeIntervalMs);
  const wanted = times.suspicionMult - 2;
  // With too few others to confirm it, waiting for confirmations would only delay it: neither we nor the suspect count.
  const confirmationsWanted = members - 2 < wanted ? 0 : wanted;
  return { minMs, maxMs: times.suspicionMaxTimeoutMult * minMs, confirmationsWanted };
}

export function suspicionMs({ minMs, maxMs, confirmationsWanted }: SuspicionSpan, confirmations: number): number {
  if (confirmationsWanted < 1) return minMs;
  const share = Math.log(confirmations + 1) / Math.log(confirmationsWanted + 1);
  return Math.max(minMs, Math.floor(maxMs - share * (maxMs - minMs)));
}

export class Suspicion {
  readonly span: SuspicionSpan;
  readonly startedAtMs: number;
  readonly #known: Set<string>;
  #confirmations = 0;

  constructor(from: string, span: SuspicionSpan, startedAtMs: number) {
    this.span = span;
    this.startedAtMs = startedAtMs;
    this.#known = new Set([from]);
  }

  get confirmations(): number {
    return this.#confirmations;
  }

  /** True if this is new: another member confirms it, and there are not enough confirmations yet. */
  confirm(from: string): boolean {
    if (this.#confirmations >= this.span.confirmationsWanted || this.#known.has(from)) return false;
    this.#known.add(from);
    this.#confirmations += 1;
    return true;
  }

  get endsAtMs(): number {
    return this.startedAtMs + suspicionMs(this.span, this.#confirmations);
  }
}

import type { Clock } from "#base/clock.ts";
import type { Principal } from "#access/principal.ts";
import type { Unauthenticated } from "#access/refusal.ts";

/** Who calls, and how long that counts, or why it is not known. */
export type Identified =
  | {
      readonly ok: true;
      readonly principal: Principal;
      /** When the credentials expire, by the wall clock. */
      readonly untilMs: number;
      /** When they are verified again: on the monotonic clock, so that nobody puts it off by setting a clock back. */
      readonly verifiedUntilMono?: number;
    }
  | { readonly ok: false; readonly refusal: Unauthenticated };

export const stillCounts = (
  { untilMs, verifiedUntilMono }: Identified & { readonly ok: true },
  clock: Pick<Clock, "wallMs" | "monotonicMs">,
): boolean =>
  (untilMs === Infinity || clock.wallMs() < untilMs) &&
  (verifiedUntilMono === undefined || clock.monotonicMs() < verifiedUntilMono);

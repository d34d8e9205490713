import type { Clock } from "#base/clock.ts";
import type { Principal } from "#access/principal.ts";
import type { Unauthenticated } from "#access/refusal.ts";

/** Who calls, and how long that is valid, or why the caller is unknown. */
export type Identified =
  | {
      readonly ok: true;
      readonly principal: Principal;
      /** When the credentials expire, by the wall clock. */
      readonly untilMs: number;
      /** They are verified again after this at the latest, however long others may be remembered. */
      readonly verifiedForMs?: number;
      /** When they are verified again: on the monotonic clock, so that setting a clock back does not delay it. */
      readonly verifiedUntilMono?: number;
    }
  | { readonly ok: false; readonly refusal: Unauthenticated };

export const stillCounts = (
  { untilMs, verifiedUntilMono }: Identified & { readonly ok: true },
  clock: Pick<Clock, "wallMs" | "monotonicMs">,
): boolean =>
  (untilMs === Infinity || clock.wallMs() < untilMs) &&
  (verifiedUntilMono === undefined || clock.monotonicMs() < verifiedUntilMono);

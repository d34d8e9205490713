import type { Principal } from "#access/principal.ts";
import type { Unauthenticated } from "#access/refusal.ts";

/** Who calls, for how long that may be believed without looking again (wall clock), or why it is not known. */
export type Identified =
  | { readonly ok: true; readonly principal: Principal; readonly untilMs: number }
  | { readonly ok: false; readonly refusal: Unauthenticated };

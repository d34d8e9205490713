import type { Event, SoftEvent } from "#kernel/model/event.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { Reply } from "#kernel/model/reply.ts";

/** The outcome of deciding a command. The state is not changed yet. */
export type Decision =
  | { readonly ok: true; readonly events: readonly Event[]; readonly soft: readonly SoftEvent[]; readonly reply: Reply }
  /** Rejected, but with events: the command showed that a void claim has ended. */
  | { readonly ok: false; readonly rejection: Rejection; readonly events: readonly Event[] };

const none: readonly never[] = [];

export const accept = (reply: Reply, events: readonly Event[] = none, soft: readonly SoftEvent[] = none): Decision => ({
  ok: true,
  events,
  soft,
  reply,
});

export const reject = (rejection: Rejection): Decision => ({ ok: false, rejection, events: none });

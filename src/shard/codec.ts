/**
 * A batch's events as the bytes that the journal keeps: `{"v":1,"events":[...]}` in UTF-8. One `JSON.stringify` a
 * batch, for this is the hottest encoder of the program.
 */
import { Fault } from "#base/fault.ts";
import { type Event, featureOf } from "#kernel/event.ts";

/** Raised when the envelope changes, never for a new kind of event: those have feature levels. */
const version = 1;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

export const encodeEvents = (events: readonly Event[]): Uint8Array =>
  encoder.encode(`{"v":${version},"events":${JSON.stringify(events)}}`);

/** Faults: "corrupt" for what nobody ever wrote, "invalid" for what a newer program wrote. */
export function decodeEvents(payload: Uint8Array): readonly Event[] {
  const envelope = parse(payload);
  if (typeof envelope.v !== "number" || !Array.isArray(envelope.events))
    throw new Fault("corrupt", "decode events", { why: "not an envelope of events" });
  if (envelope.v !== version) throw newer({ version: envelope.v });
  for (const event of envelope.events as readonly { kind?: unknown }[]) {
    const kind = event?.kind;
    if (typeof kind !== "string") throw new Fault("corrupt", "decode events", { why: "an event without a kind" });
    if (!Object.hasOwn(featureOf, kind)) throw newer({ kind });
  }
  return envelope.events as readonly Event[];
}

function parse(payload: Uint8Array): { readonly v?: unknown; readonly events?: unknown } {
  try {
    const value: unknown = JSON.parse(decoder.decode(payload));
    if (typeof value === "object" && value !== null) return value;
  } catch (cause) {
    throw new Fault("corrupt", "decode events", { sizeBytes: payload.length }, cause);
  }
  throw new Fault("corrupt", "decode events", { why: "not an object" });
}

const newer = (facts: { readonly version?: number; readonly kind?: string }): Fault =>
  new Fault("invalid", "decode events: written by a newer Millrace", facts);

/**
 * Encodes a batch's events as the bytes that the journal keeps. The second encoding (event-code.ts) is written; the
 * first, JSON in UTF-8 as `{"v":1,"events":[...]}`, must be readable for ever.
 */
import { Fault } from "#base/fault.ts";
import { type Event, featureOf } from "#kernel/model/event.ts";
import { version } from "./event-code.ts";
import { EventReader } from "./event-reader.ts";
import { EventWriter } from "./event-writer.ts";

const brace = 0x7b;
const jsonVersion = 1;
const decoder = new TextDecoder("utf-8", { fatal: true });

export function encodeEvents(events: readonly Event[]): Uint8Array {
  const writer = new EventWriter();
  for (const event of events) writer.add(event);
  return writer.finish();
}

/**
 * Roughly the memory that a batch's events need when they are kept or read back. The dense encoding hardly reduces it,
 * so it is measured by their size as JSON.
 */
export const weightOf = (payload: Uint8Array, events: { readonly length: number }): number =>
  payload.length + (payload[0] === brace ? 0 : 190 * events.length);

/** Throws a Fault: "corrupt" for bytes that no version wrote, "invalid" for those of a newer version. */
export function decodeEvents(payload: Uint8Array): readonly Event[] {
  const first = payload[0] ?? 0;
  if (first === version) return new EventReader(payload, eventOf).all();
  if (first > version && first < 0x10) throw newer({ version: first });
  return decodeJson(payload);
}

function decodeJson(payload: Uint8Array): readonly Event[] {
  if (payload[0] !== brace) throw new Fault("corrupt", "decode events", { why: "not a batch" });
  const envelope = parse(payload);
  if (typeof envelope.v !== "number" || !Array.isArray(envelope.events))
    throw new Fault("corrupt", "decode events", { why: "not an envelope of events" });
  if (envelope.v !== jsonVersion) throw newer({ version: envelope.v });
  return envelope.events.map(checked);
}

/** Parses one event from JSON: rare events are written so, and remote watchers receive events so. */
export function eventOf(json: string): Event {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new Fault("corrupt", "decode events", { length: json.length }, cause);
  }
  return checked(value);
}

function checked(event: unknown): Event {
  const kind = (event as { readonly kind?: unknown } | null)?.kind;
  if (typeof kind !== "string") throw new Fault("corrupt", "decode events", { why: "an event without a kind" });
  if (!Object.hasOwn(featureOf, kind)) throw newer({ kind });
  return event as Event;
}

function parse(payload: Uint8Array): { readonly v?: unknown; readonly events?: unknown } {
  try {
    return JSON.parse(decoder.decode(payload)) as object;
  } catch (cause) {
    throw new Fault("corrupt", "decode events", { sizeBytes: payload.length }, cause);
  }
}

const newer = (facts: { readonly version?: number; readonly kind?: string }): Fault =>
  new Fault("invalid", "decode events: written by a newer Millrace", facts);

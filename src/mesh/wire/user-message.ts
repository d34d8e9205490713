/**
 * Our own messages between nodes, disguised so that a serf agent ignores them silently: a join intent of logical time 0
 * for the receiver's own name. Every agent knows itself with a later time, so the intent is old: no clock moves,
 * nothing is logged above debug, nothing is passed on. Serf's decoder skips unknown fields, and ours are in those. (An
 * unknown kind of message would cause a warning in its log each time.)
 */
import { Fields } from "./fields.ts";
import { framed } from "./messages.ts";
import { serfCode } from "#mesh/serf/serf-messages.ts";
import type { PackedMap } from "./msgpack-reader.ts";

export const encodeUserMessage = (to: string, from: string, bytes: Uint8Array): Uint8Array =>
  framed(serfCode.join, { LTime: 0, Node: to, MillraceFrom: from, Millrace: bytes });

/** Undefined for a real join intent. */
export function userMessageIn(
  intent: PackedMap,
  bytesMax: number,
): { readonly from: string; readonly bytes: Uint8Array } | undefined {
  if (!intent.has("Millrace")) return undefined;
  const fields = new Fields(intent);
  return { from: fields.name("MillraceFrom"), bytes: Uint8Array.from(fields.bytes("Millrace", bytesMax)) };
}

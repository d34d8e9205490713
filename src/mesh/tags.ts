/** A node's metadata as serf's tags: the byte 255 and a MessagePack map of texts, 512 bytes at most. */
import { Fault } from "#base/fault.ts";
import { metaBytesMax } from "./machine/limits.ts";
import { MsgpackReader, textOf, whole } from "./wire/msgpack-reader.ts";
import { joined, pack } from "./wire/msgpack-writer.ts";

export type Tags = Readonly<Record<string, string>>;

const tagsMark = 255;

/** Sorted by name, so that equal tags are equal bytes. Throws "exhausted" if they are too large. */
export function encodeTags(tags: Tags): Uint8Array {
  const sorted = Object.entries(tags).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const bytes = joined([Uint8Array.of(tagsMark), pack(Object.fromEntries(sorted))]);
  if (bytes.length > metaBytesMax)
    throw new Fault("exhausted", "describe this node to the mesh", { bytes: bytes.length, metaBytesMax });
  return bytes;
}

/**
 * Accepts any bytes, because other kinds of members may send anything. Without the mark it is a role, as in older
 * versions of serf.
 */
export function decodeTags(meta: Uint8Array): Tags {
  if (meta.length === 0) return {};
  if (meta[0] !== tagsMark) return { role: textOf(meta) };
  try {
    const map = whole(() => new MsgpackReader(meta, 1, 600).map());
    return Object.fromEntries([...map].flatMap(([name, v]) => (v instanceof Uint8Array ? [[name, textOf(v)]] : [])));
  } catch {
    return {};
  }
}

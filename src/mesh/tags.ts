/** What a node says of itself, as serf's tags: the byte 255 and a MessagePack map of texts, 512 bytes at most. */
import { Fault } from "#base/fault.ts";
import { metaBytesMax } from "./machine/limits.ts";
import { MsgpackReader, textOf, whole } from "./wire/msgpack-reader.ts";
import { joined, pack } from "./wire/msgpack-writer.ts";

export type Tags = Readonly<Record<string, string>>;

const tagsMark = 255;

/** In the order of their names, so that the same tags are the same bytes. Fault "exhausted" when they are too many. */
export function encodeTags(tags: Tags): Uint8Array {
  const sorted = Object.entries(tags).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const bytes = joined([Uint8Array.of(tagsMark), pack(Object.fromEntries(sorted))]);
  if (bytes.length > metaBytesMax)
    throw new Fault("exhausted", "describe this node to the mesh", { bytes: bytes.length, metaBytesMax });
  return bytes;
}

/** Whatever the bytes: members of other kinds may say anything. Without the mark it is a role, as serf once had it. */
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

/**
 * What is on its way into the log. A record that says "gone" means whatever lies before it in the log under that key;
 * so it must not be written for what is just coming, which the table does not know yet.
 */
import { keyFromBytes, keyWords, namedFunction, wordsOfBytes, type Key } from "./key.ts";
import type { PackedLog } from "./packed-log.ts";
import { headerBytes, kinds, peekHeader } from "./record.ts";

export const keyText = (fn: number, key: Key): string =>
  `${fn} ${Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("latin1")}`;

/** As many as there are writes under way: looked for by who lets go, which is seldom, so that writers pay nothing. */
export function comingKeys(log: PackedLog): ReadonlySet<string> {
  const keys = new Set<string>();
  const key: Key = new Uint32Array(keyWords);
  for (const { slab, at } of log.coming()) {
    const header = peekHeader(slab.buffer, at);
    if (header?.kind === kinds.blob || header?.kind === kinds.file) {
      keyFromBytes(key, header.fn, slab.buffer, at + headerBytes);
      keys.add(keyText(header.fn, key));
    } else if (header?.kind === kinds.named) {
      wordsOfBytes(key, slab.buffer, at + headerBytes, keyWords);
      keys.add(keyText(namedFunction, key));
    }
  }
  return keys;
}

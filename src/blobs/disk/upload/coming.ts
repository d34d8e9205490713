/**
 * Records that are being written to the log. A "gone" record applies to everything before it in the log under that key,
 * so it must not be written for a blob that is on its way and not in the table yet.
 */
import { must } from "#base/assert.ts";
import { keyFromBytes, keyWords, namedFunction, wordsOfBytes, type Key } from "#blobs/disk/table/key.ts";
import type { PackedLog } from "#blobs/disk/log/packed-log.ts";
import { headerBytes, kinds, peekHeader, recordBytes } from "#blobs/disk/log/record.ts";

export const keyText = (fn: number, key: Key): string =>
  `${fn} ${Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("latin1")}`;

/** Computed when blobs are evicted, which is rare, so that writers pay nothing for it. */
export function comingKeys(log: PackedLog): ReadonlySet<string> {
  const keys = new Set<string>();
  const key: Key = new Uint32Array(keyWords);
  for (const { slab, at, lengthBytes } of log.coming())
    for (let from = at, length = 0; from < at + lengthBytes; from += length) {
      const header = must(peekHeader(slab.buffer, from), "a record that was put together here");
      length = recordBytes(header.bodyBytes);
      if (header.kind === kinds.blob || header.kind === kinds.file) {
        keyFromBytes(key, header.fn, slab.buffer, from + headerBytes);
        keys.add(keyText(header.fn, key));
      } else if (header.kind === kinds.named) {
        wordsOfBytes(key, slab.buffer, from + headerBytes, keyWords);
        keys.add(keyText(namedFunction, key));
      }
    }
  return keys;
}

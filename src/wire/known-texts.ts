/**
 * A cache of repeated texts, such as names of tenants and labels: a text that was read before is the same string
 * object, and takes no memory of its own. Bounded: each text hashes to one slot, and a slot keeps what came last.
 */
import { byteHash } from "./byte-hash.ts";
import type { Reader } from "./reader.ts";

const places = 1024;
/** Only texts whose length fits into one byte on the wire are cached. */
const lengthMax = 64;

export class KnownTexts {
  readonly #texts: string[] = Array.from({ length: places }, () => "");

  /** The text at the reader's position; what `from.string()` would return. */
  read(from: Reader): string {
    const { bytes, pos } = from;
    const start = pos + 1;
    const end = start + (bytes[pos] as number);
    if (end - start > lengthMax || end > bytes.length) return from.string();
    const place = byteHash(bytes, start, end) & (places - 1);
    const known = this.#texts[place] as string;
    if (isText(known, bytes, start, end)) {
      from.pos = end;
      return known;
    }
    const text = from.string();
    // A text that is not ASCII is never found again: its characters are not its bytes.
    if (text.length === end - start) this.#texts[place] = text;
    return text;
  }
}

function isText(text: string, bytes: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let i = start; i < end; i += 1) if (text.charCodeAt(i - start) !== bytes[i]) return false;
  return true;
}

/** Bytes of text in parts that end between characters, so that each can be shown by itself. */

const partBytesMax = 64 * 1024;

/** The parts yielded have all the bytes that came in, in order; only the last may end within a character. */
export async function* wholeCharacters(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held: Uint8Array = new Uint8Array();
  for await (const bytes of source) {
    let rest: Uint8Array = held.length === 0 ? Uint8Array.from(bytes) : Buffer.concat([held, bytes]);
    while (rest.length > partBytesMax) {
      const end = boundary(rest, partBytesMax);
      yield rest.subarray(0, end);
      rest = rest.subarray(end);
    }
    const end = boundary(rest, rest.length);
    if (end > 0) yield rest.subarray(0, end);
    held = Uint8Array.from(rest.subarray(end));
  }
  if (held.length > 0) yield held;
}

/** The last place at or before `end` where no UTF-8 sequence is cut; `end` where the bytes there are no UTF-8. */
export function boundary(bytes: Uint8Array, end: number): number {
  for (let back = 1; back <= Math.min(4, end); back += 1) {
    const byte = bytes[end - back] ?? 0;
    if (byte < 0x80) return end;
    if (byte < 0xc0) continue; // goes on with a character that began before
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return length > back ? end - back : end;
  }
  return end;
}

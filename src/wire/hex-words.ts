/** Converts hashes from hex on the wire to the 32-bit words used for lookups, without creating a string. */

/**
 * The byte for two hex digits, indexed by both characters at once; more than a byte if they are not digits. The table
 * is large, but the entries for digits are within 2 KB of it, so it is faster than calculating.
 */
export const byteOfDigits = new Uint16Array(0x10000).fill(0x100);
for (let byte = 0; byte < 0x100; byte += 1) {
  const digits = byte.toString(16).padStart(2, "0");
  byteOfDigits[digits.charCodeAt(0) | (digits.charCodeAt(1) << 8)] = byte;
}

/** Fills `words` from the digits at `at`, eight for each. False unless all are lower-case hex digits. */
export function wordsOfDigits(words: Uint32Array, bytes: Uint8Array, at: number): boolean {
  if (at + 8 * words.length > bytes.length) return false;
  let all = 0;
  for (let i = 0, from = at; i < words.length; i += 1, from += 8) {
    const a = byteOfDigits[(bytes[from] as number) | ((bytes[from + 1] as number) << 8)] as number;
    const b = byteOfDigits[(bytes[from + 2] as number) | ((bytes[from + 3] as number) << 8)] as number;
    const c = byteOfDigits[(bytes[from + 4] as number) | ((bytes[from + 5] as number) << 8)] as number;
    const d = byteOfDigits[(bytes[from + 6] as number) | ((bytes[from + 7] as number) << 8)] as number;
    all |= a | b | c | d;
    words[i] = a | (b << 8) | (c << 16) | (d << 24);
  }
  return all <= 0xff;
}

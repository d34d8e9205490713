/** Keys of the table: 8 words for every digest function. */
import { hash as hashOnce } from "node:crypto";
import { digestFunctions, hashBytes, type DigestFunction } from "#base/digest.ts";
import { byteOfDigits } from "#wire/hex-words.ts";

export const keyWords = 8;
export type Key = Uint32Array;

/** The number of a digest function in records and entries. The order of `digestFunctions` never changes. */
export const functionNumber = (fn: DigestFunction): number => digestFunctions.indexOf(fn);

/** Names of the ActionIndex are in the same table, under a function number that no blob has. */
export const namedFunction = 15;

/** From a hash in hex. A hash longer than a key is hashed again, so that keys still differ. */
export function keyFromHex(key: Key, fn: number, hex: string): void {
  if (hex.length === keyWords * 8) return wordsOfHex(key, hex, keyWords);
  if (hex.length > keyWords * 8) return keyFromBytes(key, fn, Buffer.from(hex, "hex"), 0);
  key.fill(0);
  wordsOfHex(key, hex, hex.length / 8);
}

const plainHexLength = keyWords * 8;
const slash = 0x2f;
const zero = 0x30;
/** Sizes up to nine digits fit into a small integer; larger ones take the general path. */
const plainLengthMax = plainHexLength + 1 + 9;

/** From a SHA-256 digest in its usual form `<hash>/<size>`: returns the size, or -1 for any other text. */
export function keyFromPlain(key: Key, digest: string): number {
  const { length } = digest;
  if (length < plainHexLength + 2 || length > plainLengthMax) return -1;
  if (digest.charCodeAt(plainHexLength) !== slash || !plainWords(key, digest)) return -1;
  if (digest.charCodeAt(plainHexLength + 1) === zero && length > plainHexLength + 2) return -1;
  let sizeBytes = 0;
  for (let i = plainHexLength + 1; i < length; i += 1) {
    const digit = digest.charCodeAt(i) - zero;
    if (digit < 0 || digit > 9) return -1;
    sizeBytes = sizeBytes * 10 + digit;
  }
  return sizeBytes;
}

/** Checks each digit without a branch; a wrong one shows in the final result. */
function plainWords(key: Key, digest: string): boolean {
  let all = 0;
  let wide = 0;
  for (let i = 0, at = 0; i < keyWords; i += 1) {
    let word = 0;
    for (let bits = 0; bits < 32; bits += 8, at += 2) {
      const [one, two] = [digest.charCodeAt(at), digest.charCodeAt(at + 1)];
      wide |= one | two;
      const byte = byteOfDigits[(one & 0x7f) | ((two & 0x7f) << 8)] as number;
      all |= byte;
      word |= byte << bits;
    }
    key[i] = word;
  }
  return wide < 0x80 && all < 0x100;
}

/** From the raw bytes at `at`, as many as the function has. */
export function keyFromBytes(key: Key, fn: number, bytes: Uint8Array, at: number): void {
  const count = hashLength(fn);
  if (count > keyWords * 4) {
    const folded = hashOnce("sha256", bytes.subarray(at, at + count), "buffer");
    return wordsOfBytes(key, folded, 0, keyWords);
  }
  if (count < keyWords * 4) key.fill(0);
  wordsOfBytes(key, bytes, at, count >>> 2);
}

export const hashLength = (fn: number): number => {
  const name = digestFunctions[fn];
  return name === undefined ? keyWords * 4 : hashBytes[name];
};

export function wordsOfBytes(key: Key, bytes: Uint8Array, at: number, count: number): void {
  for (let i = 0, from = at; i < count; i += 1, from += 4) key[i] = wordAt(bytes, from);
}

const wordAt = (bytes: Uint8Array, at: number): number =>
  (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24);

function wordsOfHex(key: Key, hex: string, count: number): void {
  for (let i = 0, at = 0; i < count; i += 1, at += 8)
    key[i] = byteAt(hex, at) | (byteAt(hex, at + 2) << 8) | (byteAt(hex, at + 4) << 16) | (byteAt(hex, at + 6) << 24);
}

const byteAt = (hex: string, at: number): number =>
  ((nibble[hex.charCodeAt(at)] ?? 0) << 4) | (nibble[hex.charCodeAt(at + 1)] ?? 0);

const nibble = new Uint8Array(128);
for (let i = 0; i < 16; i += 1) nibble[i.toString(16).charCodeAt(0)] = i;

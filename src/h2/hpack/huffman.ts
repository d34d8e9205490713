/**
 * HPACK's Huffman code (RFC 7541 appendix B). The code is canonical: codes of one length are consecutive in the order
 * of their symbols, so the lengths alone define it and the tables are built from them at start.
 *
 * Decoding looks at 12 bits at a time, which are one or two symbols of ordinary headers. Longer codes take a slower
 * path, and so do NUL, CR and LF, which a field value must not contain: they are detected there, at no cost for other
 * symbols.
 */

// prettier-ignore
const codeLengths = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
  28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
  7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
  23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
  21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

const endOfString = 256;
const codeBitsMax = 30;
const lookBits = 12;

const codes = new Uint32Array(257);
const lengths = Uint8Array.from(codeLengths);
/** The next 12 bits -> symbols << 24 | their bits << 16 | second symbol << 8 | first symbol; 0 for a longer code. */
const look = new Uint32Array(1 << lookBits);
/** By length: the first code, and the position of its symbol in `inOrder`. */
const firstCode = new Float64Array(codeBitsMax + 2);
const firstAt = new Uint16Array(codeBitsMax + 2);
const inOrder = Uint16Array.from(Array.from(lengths.keys()).toSorted((a, b) => lengths[a]! - lengths[b]! || a - b));

function makeTables(): void {
  let code = 0;
  let at = 0;
  for (let length = 1; length <= codeBitsMax; length += 1) {
    code *= 2;
    firstCode[length] = code;
    firstAt[length] = at;
    while (at < inOrder.length && lengths[inOrder[at]!] === length) {
      const symbol = inOrder[at]!;
      codes[symbol] = code;
      if (length <= lookBits) {
        const rest = lookBits - length;
        look.fill((1 << 24) | (length << 16) | symbol, code << rest, (code + 1) << rest);
      }
      code += 1;
      at += 1;
    }
  }
  addSecondSymbols();
}

/** Where the first symbol leaves enough bits for a second one, the entry gets both. */
function addSecondSymbols(): void {
  const single = look.slice();
  for (let bits = 0; bits < look.length; bits += 1) {
    const first = single[bits]!;
    const length = (first >>> 16) & 0xff;
    if (length === 0) continue;
    const second = single[(bits << length) & (look.length - 1)]!;
    const both = length + ((second >>> 16) & 0xff);
    if (second !== 0 && both <= lookBits)
      look[bits] = (2 << 24) | (both << 16) | ((second & 0xff) << 8) | (first & 0xff);
  }
}
makeTables();

/** Whether the last call of `huffmanDecode` found a NUL, CR or LF. */
export let huffmanSawControl = false;

/**
 * The size that `target` needs for `bytes` encoded bytes: the shortest code has 5 bits, and one byte more is written.
 */
export const huffmanDecodedMax = (bytes: number): number => Math.ceil((bytes * 8) / 5) + 1;

/** Decodes source[at, end) to the front of `target`; returns the number of bytes, or -1 for invalid input. */
export function huffmanDecode(source: Uint8Array, at: number, end: number, target: Uint8Array): number {
  huffmanSawControl = false;
  let window = 0; // its lowest `bits` bits are still to be decoded; the bits above are stale
  let bits = 0;
  let out = 0;
  for (;;) {
    if (bits < lookBits) {
      if (end - at >= 2) {
        window = (window << 16) | (source[at]! << 8) | source[at + 1]!;
        at += 2;
        bits += 16;
      } else if (at < end) {
        window = (window << 8) | source[at]!;
        at += 1;
        bits += 8;
        if (bits < lookBits) break;
      } else break;
    }
    const found = look[(window >>> (bits - lookBits)) & 0xfff]!;
    if (found !== 0) {
      target[out] = found;
      target[out + 1] = found >>> 8;
      out += found >>> 24;
      bits -= (found >>> 16) & 0xff;
      continue;
    }
    const long = decodeLong(source, at, end, window & ((1 << bits) - 1), bits);
    if (long < 0) return -1;
    target[out] = long;
    out += 1;
    bits -= long >>> 8;
    while (bits < 0) {
      window = source[at]!;
      at += 1;
      bits += 8;
    }
  }
  return decodeTail(window, bits, target, out);
}

/** Fewer than 12 bits are left: perhaps some more short symbols, then only the padding of ones, at most 7 bits. */
function decodeTail(window: number, bits: number, target: Uint8Array, out: number): number {
  for (;;) {
    const symbol = look[((window << (lookBits - bits)) | (0xfff >>> bits)) & 0xfff]! & 0xff;
    const length = lengths[symbol]!;
    if (length > bits || codes[symbol] !== ((window >>> (bits - length)) & ((1 << length) - 1))) break;
    target[out] = symbol;
    out += 1;
    bits -= length;
  }
  const padding = (1 << bits) - 1;
  return bits < 8 && (window & padding) === padding ? out : -1;
}

/**
 * A code of more than 12 bits: `held` (of `bits` bits, at least 12) goes before source[at]. Returns length << 8 |
 * symbol, or -1. Up to 27 + 24 bits are collected in a double, which is exact up to 53 bits.
 */
function decodeLong(source: Uint8Array, at: number, end: number, held: number, bits: number): number {
  let gathered = held;
  for (let i = 0; i < 3; i += 1) gathered = gathered * 256 + (at + i < end ? source[at + i]! : 0xff);
  const known = bits + 8 * Math.min(3, end - at);
  const total = bits + 24;
  for (let length = lookBits + 1; length <= codeBitsMax; length += 1) {
    const code = Math.floor(gathered / 2 ** (total - length));
    const index = code - firstCode[length]!;
    const symbol = inOrder[firstAt[length]! + index];
    if (index < 0 || symbol === undefined || lengths[symbol] !== length) continue;
    if (length > known || symbol === endOfString) return -1;
    if (symbol === 0 || symbol === 10 || symbol === 13) huffmanSawControl = true;
    return (length << 8) | symbol;
  }
  return -1;
}

/** Bytes that the text would take; its characters must be below 256. */
export function huffmanLength(text: string): number {
  let bits = 0;
  for (let i = 0; i < text.length; i += 1) bits += lengths[text.charCodeAt(i) & 0xff]!;
  return (bits + 7) >>> 3;
}

/** Writes the text's code to target[at...]; returns where it ends. */
export function huffmanEncode(text: string, target: Uint8Array, at: number): number {
  let window = 0;
  let bits = 0;
  for (let i = 0; i < text.length; i += 1) {
    const symbol = text.charCodeAt(i) & 0xff;
    const code = codes[symbol]!;
    let length = lengths[symbol]!;
    if (length > 16) {
      window = (window << (length - 16)) | (code >>> 16);
      bits += length - 16;
      length = 16;
      while (bits >= 8) {
        bits -= 8;
        target[at] = window >>> bits;
        at += 1;
      }
    }
    window = (window << length) | (code & ((1 << length) - 1));
    bits += length;
    while (bits >= 8) {
      bits -= 8;
      target[at] = window >>> bits;
      at += 1;
    }
  }
  if (bits > 0) {
    target[at] = (window << (8 - bits)) | (0xff >>> bits);
    at += 1;
  }
  return at;
}

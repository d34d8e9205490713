/**
 * HPACK's Huffman code (RFC 7541 appendix B). The code is canonical: codes of one length follow each other in the
 * order of their symbols, so the lengths alone say everything and the tables are made from them at start.
 *
 * Decoding looks at 8 bits at a time: every symbol that occurs in ordinary headers has at most 8, and takes one
 * look. Longer codes go a slower way, and so do NUL, CR and LF, which a field value must not contain: they are
 * noticed there, at no cost for anybody else.
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
const shortBits = 8;

const codes = new Uint32Array(257);
const lengths = Uint8Array.from(codeLengths);
/** The next 8 bits -> length << 8 | symbol, or 0 where the code is longer. */
const short = new Uint16Array(1 << shortBits);
/** By length: the first code, and where its symbol stands in `inOrder`. */
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
      if (length <= shortBits) short.fill((length << 8) | symbol, code << (8 - length), (code + 1) << (8 - length));
      code += 1;
      at += 1;
    }
  }
}
makeTables();

/** Whether the last call of `huffmanDecode` met a NUL, CR or LF. */
export let huffmanSawControl = false;

/** What `target` must hold for `bytes` encoded bytes: the shortest code has 5 bits. */
export const huffmanDecodedMax = (bytes: number): number => Math.ceil((bytes * 8) / 5);

/** Decodes source[at, end) to the front of `target`; answers the number of bytes, or -1 for what is not the code. */
export function huffmanDecode(source: Uint8Array, at: number, end: number, target: Uint8Array): number {
  huffmanSawControl = false;
  let window = 0; // its lowest `bits` bits are still to be decoded; what is above them is stale
  let bits = 0;
  let out = 0;
  for (;;) {
    if (bits < shortBits) {
      if (at === end) break;
      window = (window << 8) | source[at]!;
      at += 1;
      bits += 8;
    }
    const found = short[(window >>> (bits - shortBits)) & 0xff]!;
    if (found === 0) {
      const long = decodeLong(source, at, end, window & ((1 << bits) - 1), bits);
      if (long < 0) return -1;
      target[out] = long & 0xff;
      out += 1;
      bits -= long >>> 8;
      while (bits < 0) {
        window = source[at]!;
        at += 1;
        bits += 8;
      }
    } else {
      target[out] = found & 0xff;
      out += 1;
      bits -= found >>> 8;
    }
  }
  // Fewer than 8 bits are left: perhaps one short symbol more, then only the padding of ones.
  while (bits >= 5) {
    const found = short[((window << (8 - bits)) | (0xff >>> bits)) & 0xff]!;
    if (found === 0 || found >>> 8 > bits) break;
    target[out] = found & 0xff;
    out += 1;
    bits -= found >>> 8;
  }
  const padding = (1 << bits) - 1;
  return (window & padding) === padding ? out : -1;
}

/**
 * A code of more than 8 bits: `held` (of `bits` bits) goes before source[at]. Answers length << 8 | symbol, or -1.
 * Up to 15 + 32 bits are gathered in a double, which counts to 53 exactly.
 */
function decodeLong(source: Uint8Array, at: number, end: number, held: number, bits: number): number {
  let gathered = held;
  for (let i = 0; i < 4; i += 1) gathered = gathered * 256 + (at + i < end ? source[at + i]! : 0xff);
  const known = bits + 8 * Math.min(4, end - at);
  const total = bits + 32;
  for (let length = shortBits + 1; length <= codeBitsMax; length += 1) {
    const code = Math.floor(gathered / 2 ** (total - length));
    const index = code - firstCode[length]!;
    const place = firstAt[length]! + index;
    const symbol = inOrder[place];
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

/** Writes the text's code to target[at...]; answers where it ends. */
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

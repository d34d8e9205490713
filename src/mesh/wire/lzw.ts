/**
 * LZW as in GIF and in Go's compress/lzw, with least significant bits first and 8-bit literals: codes of 9 to 12 bits,
 * 256 clears the table, 257 ends the data.
 */
import { Fault } from "#base/fault.ts";

const clearCode = 256;
const endCode = 257;
const widthMin = 9;
const widthMax = 12;
const codeMax = (1 << widthMax) - 1;

const corrupt = (why: string): Fault => new Fault("invalid", "decompress", { why });

export function decompress(bytes: Uint8Array, sizeBytesMax: number): Uint8Array {
  const bits = new BitReader(bytes);
  const table = new Table();
  const out = new Growing(sizeBytesMax);
  let width = widthMin;
  let high = endCode; // the code that this round will define
  let last = -1;
  for (;;) {
    const code = bits.read(width);
    if (code === endCode) return out.bytes();
    if (code === clearCode) {
      width = widthMin;
      high = endCode;
      last = -1;
      continue;
    }
    if (code > high) throw corrupt("an undefined code");
    const first = table.expand(code, code === high ? last : -1, out);
    if (last >= 0) table.define(high, last, first);
    last = code;
    high += 1;
    if (high < 1 << width) continue;
    if (width < widthMax) width += 1;
    else {
      // The table is full: codes keep their meaning until the writer clears it.
      last = -1;
      high -= 1;
    }
  }
}

/** Each code stands for a shorter code and one more byte. */
class Table {
  readonly #prefix = new Uint16Array(codeMax + 1);
  readonly #suffix = new Uint8Array(codeMax + 1);
  readonly #turned = new Uint8Array(codeMax + 2);

  define(code: number, prefix: number, suffix: number): void {
    this.#prefix[code] = prefix;
    this.#suffix[code] = suffix;
  }

  /**
   * Writes the text of a code and returns its first byte. `previous` is for the one code that may be used before it is
   * defined: the previous text followed by its own first byte.
   */
  expand(code: number, previous: number, out: Growing): number {
    const turned = this.#turned;
    let length = previous < 0 ? 0 : 1;
    let walk = previous < 0 ? code : previous;
    while (walk > endCode) {
      turned[length++] = this.#suffix[walk] ?? 0;
      walk = this.#prefix[walk] ?? 0;
    }
    turned[length++] = walk;
    if (previous >= 0) turned[0] = walk;
    out.appendTurned(turned, length);
    return walk;
  }
}

class Growing {
  readonly #max: number;
  #bytes: Uint8Array = new Uint8Array(1_024);
  #size = 0;

  constructor(sizeBytesMax: number) {
    this.#max = sizeBytesMax;
  }

  appendTurned(turned: Uint8Array, length: number): void {
    const size = this.#size + length;
    if (size > this.#max) throw new Fault("exhausted", "decompress", { sizeBytesMax: this.#max });
    if (size > this.#bytes.length) {
      const wider = new Uint8Array(Math.max(this.#bytes.length * 2, size));
      wider.set(this.#bytes);
      this.#bytes = wider;
    }
    for (let i = length - 1; i >= 0; i -= 1) this.#bytes[this.#size++] = turned[i] ?? 0;
  }

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#size);
  }
}

class BitReader {
  readonly #bytes: Uint8Array;
  #at = 0;
  #held = 0;
  #count = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  read(width: number): number {
    while (this.#count < width) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw corrupt("it ends without an end code");
      this.#held |= byte << this.#count;
      this.#count += 8;
    }
    const code = this.#held & ((1 << width) - 1);
    this.#held >>>= width;
    this.#count -= width;
    return code;
  }
}

export function compress(bytes: Uint8Array): Uint8Array {
  const bits = new BitWriter(bytes.length);
  codes.clear();
  let width = widthMin;
  let high = endCode;
  bits.write(clearCode, width);
  let code = -1;
  /** Writes the code and defines a new one; false if the table had to be cleared. */
  const put = (written: number): boolean => {
    bits.write(written, width);
    high += 1;
    if (high === 1 << width) width += 1;
    if (high < codeMax) return true;
    bits.write(clearCode, width);
    width = widthMin;
    high = endCode;
    codes.clear();
    return false;
  };
  for (const byte of bytes) {
    if (code < 0) {
      code = byte;
      continue;
    }
    const key = (code << 8) | byte;
    const known = codes.find(key);
    if (known !== 0) {
      code = known;
      continue;
    }
    if (put(code)) codes.set(key, high);
    code = byte;
  }
  if (code >= 0) put(code);
  bits.write(endCode, width);
  return bits.bytes();
}

/** Maps a code and the next byte to the code of both: 20 bits of key and 12 bits of code in each slot. */
class Codes {
  static readonly places = 1 << 14; // four times the number of codes: usually the first probe finds it
  readonly #table = new Uint32Array(Codes.places);

  clear(): void {
    this.#table.fill(0);
  }

  /** 0 if there is none. */
  find(key: number): number {
    for (let at = placeOf(key); ; at = (at + 1) & (Codes.places - 1)) {
      const entry = this.#table[at] ?? 0;
      if (entry === 0) return 0;
      if (entry >>> 12 === key) return entry & codeMax;
    }
  }

  set(key: number, code: number): void {
    let at = placeOf(key);
    while (this.#table[at] !== 0) at = (at + 1) & (Codes.places - 1);
    this.#table[at] = ((key << 12) | code) >>> 0;
  }
}

const placeOf = (key: number): number => (Math.imul(key, 0x9e3779b1) >>> 18) & (Codes.places - 1);

/** Shared: compression is synchronous. */
const codes = new Codes();

class BitWriter {
  readonly #out: Uint8Array;
  #size = 0;
  #held = 0;
  #count = 0;

  constructor(bytesIn: number) {
    this.#out = new Uint8Array(Math.ceil(bytesIn * 1.6) + 16); // 12 bits for 8 at worst, and now and then a clear code
  }

  write(code: number, width: number): void {
    this.#held |= code << this.#count;
    this.#count += width;
    while (this.#count >= 8) {
      this.#out[this.#size++] = this.#held & 0xff;
      this.#held >>>= 8;
      this.#count -= 8;
    }
  }

  bytes(): Uint8Array {
    if (this.#count > 0) this.#out[this.#size++] = this.#held & 0xff;
    this.#held = this.#count = 0;
    return this.#out.subarray(0, this.#size);
  }
}

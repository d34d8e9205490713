/** BLAKE3 without native code, for platforms that the prebuilt one does not cover. Hash mode only. */

const iv = Uint32Array.of(
  0x6a09e667,
  0xbb67ae85,
  0x3c6ef372,
  0xa54ff53a,
  0x510e527f,
  0x9b05688c,
  0x1f83d9ab,
  0x5be0cd19,
);
const permutation = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8] as const;
const chunkStart = 1;
const chunkEnd = 2;
const parent = 4;
const root = 8;
const blockBytes = 64;
const chunkBytes = 1024;

/** For each of the seven rounds, which message word goes where. */
const schedule: readonly (readonly number[])[] = Array.from({ length: 6 }).reduce<number[][]>(
  (rounds) => [...rounds, permutation.map((from) => rounds.at(-1)?.[from] ?? 0)],
  [permutation.map((_, i) => i)],
);

/** Columns, then diagonals. */
const lanes = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14],
] as const;

type Block = {
  readonly chain: Uint32Array;
  readonly words: Uint32Array;
  readonly counter: number;
  readonly length: number;
  readonly flags: number;
};

const rotated = (value: number, by: number): number => (value >>> by) | (value << (32 - by));

/** The first half of the output: a chaining value, or the hash itself for the root. */
function compress({ chain, words, counter, length, flags }: Block): Uint32Array {
  const v = new Uint32Array(16);
  v.set(chain);
  v.set(iv.subarray(0, 4), 8);
  v[12] = counter >>> 0;
  v[13] = Math.floor(counter / 2 ** 32);
  v[14] = length;
  v[15] = flags;
  for (const order of schedule)
    for (const [lane, [a, b, c, d]] of lanes.entries()) {
      v[a] = (v[a] ?? 0) + (v[b] ?? 0) + (words[order[2 * lane] ?? 0] ?? 0);
      v[d] = rotated((v[d] ?? 0) ^ (v[a] ?? 0), 16);
      v[c] = (v[c] ?? 0) + (v[d] ?? 0);
      v[b] = rotated((v[b] ?? 0) ^ (v[c] ?? 0), 12);
      v[a] = (v[a] ?? 0) + (v[b] ?? 0) + (words[order[2 * lane + 1] ?? 0] ?? 0);
      v[d] = rotated((v[d] ?? 0) ^ (v[a] ?? 0), 8);
      v[c] = (v[c] ?? 0) + (v[d] ?? 0);
      v[b] = rotated((v[b] ?? 0) ^ (v[c] ?? 0), 7);
    }
  for (let i = 0; i < 8; i += 1) v[i] = (v[i] ?? 0) ^ (v[i + 8] ?? 0);
  return v.slice(0, 8);
}

const joined = (left: Uint32Array, right: Uint32Array): Block => {
  const words = new Uint32Array(16);
  words.set(left);
  words.set(right, 8);
  return { chain: iv, words, counter: 0, length: blockBytes, flags: parent };
};

export class PlainBlake3 {
  readonly #block = new Uint8Array(blockBytes);
  #inBlock = 0;
  #blocks = 0;
  #chain: Uint32Array = iv;
  #chunks = 0;
  /** Roots of complete subtrees, the largest first: one for each bit that is set in the number of chunks. */
  readonly #stack: Uint32Array[] = [];

  update(bytes: Uint8Array): this {
    for (let at = 0; at < bytes.length;) {
      // The last block is known to be the last only when nothing follows it.
      if (this.#inBlock === blockBytes) this.#endBlock();
      const take = Math.min(blockBytes - this.#inBlock, bytes.length - at);
      this.#block.set(bytes.subarray(at, at + take), this.#inBlock);
      this.#inBlock += take;
      at += take;
    }
    return this;
  }

  digest(): Buffer {
    let last = this.#lastBlock();
    for (const left of this.#stack.toReversed()) last = joined(left, compress(last));
    const words = compress({ ...last, flags: last.flags | root });
    const out = Buffer.alloc(32);
    words.forEach((word, i) => out.writeUInt32LE(word, 4 * i));
    return out;
  }

  #lastBlock(): Block {
    this.#block.fill(0, this.#inBlock);
    return this.#asBlock(this.#inBlock, chunkEnd);
  }

  #asBlock(length: number, flags: number): Block {
    const view = new DataView(this.#block.buffer);
    const words = Uint32Array.from({ length: 16 }, (_, i) => view.getUint32(4 * i, true));
    const begins = this.#blocks === 0 ? chunkStart : 0;
    return { chain: this.#chain, words, counter: this.#chunks, length, flags: flags | begins };
  }

  #endBlock(): void {
    const endsChunk = (this.#blocks + 1) * blockBytes === chunkBytes;
    const value = compress(this.#asBlock(blockBytes, endsChunk ? chunkEnd : 0));
    this.#inBlock = 0;
    this.#blocks += 1;
    this.#chain = value;
    if (!endsChunk) return;
    this.#chunks += 1;
    this.#blocks = 0;
    this.#chain = iv;
    let subtree = value;
    for (let chunks = this.#chunks; chunks % 2 === 0; chunks /= 2)
      subtree = compress(joined(this.#stack.pop() ?? iv, subtree));
    this.#stack.push(subtree);
  }
}

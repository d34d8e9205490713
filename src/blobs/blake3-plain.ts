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
const schedule = Uint8Array.from(
  Array.from({ length: 6 })
    .reduce<number[][]>(
      (rounds) => [...rounds, permutation.map((from) => rounds.at(-1)?.[from] ?? 0)],
      [permutation.map((_, i) => i)],
    )
    .flat(),
);

type Block = {
  readonly chain: Uint32Array;
  readonly words: Uint32Array;
  readonly counter: number;
  readonly length: number;
  readonly flags: number;
};

/** The indices that each of the eight mixing steps works on: four columns, then four diagonals. */
const lanes = Uint8Array.from([
  0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 5, 10, 15, 1, 6, 11, 12, 2, 7, 8, 13, 3, 4, 9, 14,
]);

/** Shared by all calls: hashing is synchronous, so no two calls use it at once. */
const v = new Int32Array(16);

function mix(lane: number, x: number, y: number): void {
  const a = lanes[4 * lane] as number;
  const b = lanes[4 * lane + 1] as number;
  const c = lanes[4 * lane + 2] as number;
  const d = lanes[4 * lane + 3] as number;
  let va = v[a] as number;
  let vb = v[b] as number;
  let vc = v[c] as number;
  let vd = v[d] as number;
  va = (va + vb + x) | 0;
  vd ^= va;
  vd = (vd >>> 16) | (vd << 16);
  vc = (vc + vd) | 0;
  vb ^= vc;
  vb = (vb >>> 12) | (vb << 20);
  va = (va + vb + y) | 0;
  vd ^= va;
  vd = (vd >>> 8) | (vd << 24);
  vc = (vc + vd) | 0;
  vb ^= vc;
  vb = (vb >>> 7) | (vb << 25);
  v[a] = va;
  v[b] = vb;
  v[c] = vc;
  v[d] = vd;
}

/** The first half of the output: a chaining value, or the hash itself for the root. */
function compress({ chain, words, counter, length, flags }: Block): Uint32Array {
  v.set(chain);
  v.set(iv.subarray(0, 4), 8);
  v[12] = counter >>> 0;
  v[13] = Math.floor(counter / 2 ** 32);
  v[14] = length;
  v[15] = flags;
  for (let at = 0; at < schedule.length; at += 16)
    for (let lane = 0; lane < 8; lane += 1) {
      const x = words[schedule[at + 2 * lane] ?? 0] ?? 0;
      const y = words[schedule[at + 2 * lane + 1] ?? 0] ?? 0;
      mix(lane, x, y);
    }
  const out = new Uint32Array(8);
  for (let i = 0; i < 8; i += 1) out[i] = (v[i] ?? 0) ^ (v[i + 8] ?? 0);
  return out;
}

const joined = (left: Uint32Array, right: Uint32Array): Block => {
  const words = new Uint32Array(16);
  words.set(left);
  words.set(right, 8);
  return { chain: iv, words, counter: 0, length: blockBytes, flags: parent };
};

export class PlainBlake3 {
  readonly #block = new Uint8Array(blockBytes);
  readonly #view = new DataView(this.#block.buffer);
  #inBlock = 0;
  #blocks = 0;
  #chain: Uint32Array = iv;
  #chunks = 0;
  /** Roots of complete subtrees, the largest first: one for each bit that is set in the number of chunks. */
  readonly #stack: Uint32Array[] = [];

  update(bytes: Uint8Array): this {
    for (let at = 0; at < bytes.length;) {
      // A block counts as the last one only if no more bytes follow, so a full block is kept until then.
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
    const words = new Uint32Array(16);
    for (let i = 0; i < 16; i += 1) words[i] = this.#view.getUint32(4 * i, true);
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

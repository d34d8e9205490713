/**
 * A patch: new bytes as ranges of old ones with differences, and literal bytes (add-diff.ts), in three compressed
 * streams: numbers, differences, literals. Applying one needs little memory whatever its size: the streams are read
 * part by part, and so are the old bytes.
 *
 * PA1 What comes out of a patch, of whatever origin, has the length that was asked for, or an error is thrown; that
 *     the bytes are right is for the caller to verify.
 * PA2 No patch makes its reader hold more than a window of each stream and one piece of old bytes.
 */
import { Readable } from "node:stream";
import { constants, createZstdDecompress, zstdCompressSync } from "node:zlib";
import { Fault } from "#base/fault.ts";
import { ByteReader } from "./byte-reader.ts";
import type { AddDiff, Op } from "./add-diff.ts";

/** A stream of at most this window can be read by all agents. */
export const windowLog = 23;
const level = 12;
const headBytes = 8;
const pieceBytes = 256 * 1024;

/** Bytes of something that lies on a disk or in memory. */
export type Bytes = (range: { readonly offset: number; readonly length: number }) => AsyncIterable<Uint8Array>;
/** Reads exactly `into.length` old bytes from `at` on. */
export type OldBytes = (at: number, into: Uint8Array) => Promise<void>;

export function compressed(bytes: Uint8Array, atLevel = level): Uint8Array {
  return zstdCompressSync(bytes, {
    params: {
      [constants.ZSTD_c_compressionLevel]: atLevel,
      [constants.ZSTD_c_windowLog]: windowLog,
      [constants.ZSTD_c_contentSizeFlag]: 0,
    },
  });
}

/** Decompresses; windows beyond the bound are refused (PA2). */
export function decompressed(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> & { destroy(): void } {
  const decoder = createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: windowLog } });
  const source = Readable.from(bytes, { objectMode: true });
  source.on("error", (error) => decoder.destroy(error));
  decoder.on("error", () => source.destroy()); // its reader is told, if there still is one
  return source.pipe(decoder);
}

export function encodePatch({ ops, add, literal }: AddDiff): Uint8Array {
  const numbers = compressed(numbersOf(ops));
  const differences = compressed(add);
  const head = Buffer.allocUnsafe(headBytes);
  head.writeUInt32LE(numbers.length, 0);
  head.writeUInt32LE(differences.length, 4);
  return Buffer.concat([head, numbers, differences, compressed(literal)]);
}

/** Each jump is told from where the range before it ended: neighbours are small numbers. */
function numbersOf(ops: readonly Op[]): Uint8Array {
  const bytes: number[] = [];
  const put = (value: number): void => {
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
    bytes.push(rest);
  };
  let expected = 0;
  for (const { from, add, literal } of ops) {
    const jump = from - expected;
    put(jump < 0 ? -jump * 2 - 1 : jump * 2);
    put(add);
    put(literal);
    expected = from + add;
  }
  return Uint8Array.from(bytes);
}

/** The new bytes, in order. `sizeBytes` is how many there must be, `patchBytes` the length of the patch. */
export async function* applyPatch(
  patch: Bytes,
  { patchBytes, sizeBytes }: { readonly patchBytes: number; readonly sizeBytes: number },
  old: OldBytes,
): AsyncGenerator<Uint8Array> {
  const [numbersBytes, differencesBytes] = await readHead(patch, patchBytes);
  const streams: ReturnType<typeof decompressed>[] = [];
  const open = (offset: number, length: number): ByteReader => {
    const stream = decompressed(patch({ offset, length }));
    streams.push(stream);
    return new ByteReader(wellFormed(stream));
  };
  const numbers = open(headBytes, numbersBytes);
  const differences = open(headBytes + numbersBytes, differencesBytes);
  const start = headBytes + numbersBytes + differencesBytes;
  const literals = open(start, patchBytes - start);
  try {
    let left = sizeBytes;
    for (let expected = 0; left > 0;) {
      const [jump, add, literal] = [await numbers.number(), await numbers.number(), await numbers.number()];
      if (jump === undefined || add === undefined || literal === undefined) throw wrong("it ends too early");
      const from = expected + (jump % 2 === 1 ? -(jump + 1) / 2 : jump / 2);
      // An operation without a byte would let a small patch keep its reader busy for ever.
      if (from < 0 || add + literal === 0 || add + literal > left) throw wrong("it leaves its bounds");
      for (let done = 0; done < add;) {
        const piece = new Uint8Array(Math.min(pieceBytes, add - done));
        await old(from + done, piece);
        await addTo(piece, differences);
        yield piece;
        done += piece.length;
      }
      for (let done = 0; done < literal;) {
        const part = await literals.some(literal - done);
        if (part.length === 0) throw wrong("it ends too early");
        yield part;
        done += part.length;
      }
      expected = from + add;
      left -= add + literal;
    }
  } finally {
    for (const stream of streams) stream.destroy();
  }
}

async function addTo(piece: Uint8Array, differences: ByteReader): Promise<void> {
  for (let at = 0; at < piece.length;) {
    const part = await differences.some(piece.length - at);
    if (part.length === 0) throw wrong("it ends too early");
    for (let i = 0; i < part.length; i += 1) piece[at + i] = (piece[at + i] ?? 0) + (part[i] ?? 0);
    at += part.length;
  }
}

async function readHead(patch: Bytes, patchBytes: number): Promise<readonly [number, number]> {
  if (patchBytes < headBytes) throw wrong("it has no head");
  const head = Buffer.alloc(headBytes);
  await new ByteReader(patch({ offset: 0, length: headBytes })).fill(head);
  const [numbers, differences] = [head.readUInt32LE(0), head.readUInt32LE(4)];
  if (headBytes + numbers + differences > patchBytes) throw wrong("its parts are longer than the whole");
  return [numbers, differences];
}

/** What the decoder says of malformed bytes, as a fault. */
async function* wellFormed(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch (error) {
    throw new Fault("corrupt", "read patch", { why: "a stream is malformed" }, error);
  }
}

const wrong = (why: string): Fault => new Fault("corrupt", "read patch", { why });

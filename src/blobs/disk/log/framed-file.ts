/**
 * A large blob stored as zstd: independent frames of 1 MiB of plain bytes each, and at the end their lengths in a
 * skippable frame. So the file itself is a valid zstd form of the blob, and reading a range decodes only the frames
 * that it touches.
 */
import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress } from "node:zlib";
import { Fault } from "#base/fault.ts";

export const framePlainBytes = 1024 * 1024;
const skippableMagic = 0x184d2a5d;
const tailMagic = 0x31465a4d;
const tailBytes = 12;

const compressed = promisify(zstdCompress) as (bytes: Uint8Array, options: object) => Promise<Buffer>;
const decompressed = promisify(zstdDecompress) as (bytes: Uint8Array, options: object) => Promise<Buffer>;
const level1 = { params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 } };

export const packFrame = (plain: Uint8Array): Promise<Buffer> => compressed(plain, level1);

export const unpackFrame = (frame: Uint8Array): Promise<Buffer> =>
  decompressed(frame, { maxOutputLength: framePlainBytes });

/** The skippable frame that follows the others. */
export function frameTable(lengths: readonly number[]): Buffer {
  const table = Buffer.alloc(8 + 4 * lengths.length + tailBytes);
  table.writeUInt32LE(skippableMagic, 0);
  table.writeUInt32LE(table.length - 8, 4);
  lengths.forEach((length, i) => table.writeUInt32LE(length, 8 + 4 * i));
  table.writeUInt32LE(lengths.length, table.length - 12);
  table.writeUInt32LE(framePlainBytes, table.length - 8);
  table.writeUInt32LE(tailMagic, table.length - 4);
  return table;
}

export type ReadAt = (target: Buffer, position: number) => Promise<number>;

/** The offset of each frame, and the end of the last one. */
export async function readFrameTable(readAt: ReadAt, fileBytes: number): Promise<readonly number[]> {
  const tail = Buffer.alloc(tailBytes);
  const wrong = (): Fault => new Fault("corrupt", "read blob", { why: "the table of its frames is damaged" });
  if (fileBytes < tailBytes || (await readAt(tail, fileBytes - tailBytes)) !== tailBytes) throw wrong();
  const count = tail.readUInt32LE(0);
  const framesEnd = fileBytes - tailBytes - 4 * count - 8;
  if (tail.readUInt32LE(8) !== tailMagic || tail.readUInt32LE(4) !== framePlainBytes || framesEnd < 0) throw wrong();
  const lengths = Buffer.alloc(4 * count);
  if ((await readAt(lengths, framesEnd + 8)) !== lengths.length) throw wrong();
  const starts = [0];
  for (let i = 0; i < count; i += 1) starts.push((starts[i] ?? 0) + lengths.readUInt32LE(4 * i));
  if (starts[count] !== framesEnd) throw wrong();
  return starts;
}

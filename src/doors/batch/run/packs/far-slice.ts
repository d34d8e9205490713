/**
 * What a task wants of a pack that is far away, as a file of its own: a Parquet file with the row groups of the task's
 * partitions and no others. The rest is neither fetched nor stored here.
 */
import { open, type FileHandle } from "node:fs/promises";
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import { sliceFooter, type WantedRows } from "./footer.ts";

const magic = Buffer.from("PAR1");
/** Most footers are shorter: they come with the end of the file. */
const endBytes = 64 * 1024;
/** Of one call (ADR 0286). */
const partBytes = 4 * 1024 * 1024;
/** Who wants more than this much of a pack fetches all of it, for others too. */
const shareMax = 0.5;

/** False where the pack has to be read as a whole. */
export async function fetchSlice(
  digest: Digest,
  wanted: WantedRows,
  path: string,
  { part }: Pick<BlobStore, "part">,
): Promise<boolean> {
  const bytes = digestSizeBytes(digest);
  if (!part || bytes < 2 * endBytes) return false;
  const read = async (from: number, to: number): Promise<Buffer | undefined> => {
    const found = await part(digest, { offset: from, length: to - from });
    return found && Buffer.from(found.buffer, found.byteOffset, found.byteLength);
  };
  const footer = await footerOf(bytes, read);
  const slice = footer && sliceFooter(footer, wanted);
  if (!slice || slice.to - slice.from > bytes * shareMax) return false;
  await using file = await open(path, "w", 0o600);
  await file.write(magic, 0, magic.length, 0);
  let at: number = magic.length;
  if (slice.to > slice.from) {
    if (!(await copy(slice.from, slice.to, file, read))) return false;
    at = slice.to;
  }
  const length = Buffer.alloc(4);
  length.writeUInt32LE(slice.footer.length);
  await file.write(Buffer.concat([slice.footer, length, magic]), 0, undefined, at);
  return true;
}

type ReadBytes = (from: number, to: number) => Promise<Buffer | undefined>;

async function footerOf(bytes: number, read: ReadBytes): Promise<Buffer | undefined> {
  const end = await read(bytes - endBytes, bytes);
  if (!end || !end.subarray(-4).equals(magic)) return undefined;
  const length = end.readUInt32LE(end.length - 8);
  if (length > Math.min(partBytes, bytes - 12)) return undefined;
  if (length <= endBytes - 8) return end.subarray(end.length - 8 - length, end.length - 8);
  return await read(bytes - 8 - length, bytes - 8);
}

async function copy(from: number, to: number, file: FileHandle, read: ReadBytes): Promise<boolean> {
  for (let at = from; at < to; at += partBytes) {
    const some = await read(at, Math.min(to, at + partBytes));
    if (!some) return false;
    await file.write(some, 0, some.length, at);
  }
  return true;
}

/** Small blobs: written to the log, and read from it or from memory. */
import { zstdDecompress, zstdDecompressSync } from "node:zlib";
import { digestText, type DigestParts } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { isBadSector } from "#blobs/disk/check/bad-sector.ts";
import { copyOf, isStill } from "#blobs/disk/check/same-copy.ts";
import type { Core } from "#blobs/disk/core.ts";
import { functionNumber, hashLength } from "#blobs/disk/table/key.ts";
import { paddedHashBytes, headerBytes, kinds, writeUint64, type Header } from "./record.ts";
import { flags } from "#blobs/disk/table/table.ts";

/** Takes verified bytes. `stored` is what is written: the bytes themselves, or a zstd frame of them. */
export function writePacked(
  core: Core,
  { fn, hash, sizeBytes }: DigestParts,
  stored: { readonly bytes: Uint8Array; readonly isZstd: boolean; readonly visible: number },
): Promise<void> {
  const { bytes, isZstd, visible } = stored;
  const number = functionNumber(fn);
  const paddedBytes = paddedHashBytes(hashLength(number));
  return core.append({
    header: { kind: kinds.blob, fn: number, isZstd, accessSec: core.nowSec(), visible },
    bodyBytes: paddedBytes + 8 + bytes.length,
    fill(target, at) {
      if (paddedBytes !== hashLength(number)) target.fill(0, at, at + paddedBytes);
      target.write(hash, at, "hex");
      writeUint64(target, at + paddedBytes, sizeBytes);
      target.set(bytes, at + paddedBytes + 8);
    },
  });
}

const payloadOf = (bytes: Buffer, { fn, bodyBytes }: Header): Buffer =>
  bytes.subarray(headerBytes + paddedHashBytes(hashLength(fn)) + 8, headerBytes + bodyBytes);

/** Reads the blob from the disk into memory that the caller owns; "corrupt" if it is damaged. */
export async function readRecordOf(core: Core, entry: number, { sizeBytes }: DigestParts): Promise<Buffer> {
  try {
    const { bytes, header } = await core.recordOf(entry);
    const payload = payloadOf(bytes, header);
    const plain = header.isZstd ? await unzstd(payload, sizeBytes) : Buffer.from(payload);
    if (plain.length === sizeBytes) return plain;
  } catch (error) {
    const isDamage = isBadSector(error) || String((error as NodeJS.ErrnoException).code).startsWith("ZSTD_error");
    if (!isDamage) throw error;
  }
  throw new Fault("corrupt", "read log", { sizeBytes });
}

/**
 * Reads the whole blob from the disk into memory that the caller owns. Undefined if its copy could not be read, and is
 * another one by now: then look it up again.
 */
export async function readPacked(core: Core, entry: number, parts: DigestParts): Promise<Buffer | undefined> {
  const copy = copyOf(core, entry);
  try {
    const plain = await readRecordOf(core, entry, parts);
    // The entry number may have been reused while the disk was read.
    if (core.find(parts) === entry) core.slabs.keep(entry, plain);
    return plain;
  } catch (error) {
    if (!isFault(error, "corrupt")) throw error;
    if (!isStill(core, parts, copy)) return undefined;
    return await core.dropDamaged(entry, { digest: digestText(parts.fn, parts.hash, parts.sizeBytes) });
  }
}

/**
 * The blob, if it is in memory or the disk has been fast. Undefined if unsure. The caller must not change it, and must
 * not keep it.
 */
export function packedNow(core: Core, entry: number): Buffer | undefined {
  const { table } = core.holdings;
  if (table.has(entry, flags.file)) return undefined;
  const held = core.slabs.bytes(entry);
  if (held) return held;
  try {
    const found = core.recordNow(entry);
    if (!found || found.header.fn !== table.fn(entry)) return undefined;
    const payload = payloadOf(found.bytes, found.header);
    const plain = found.header.isZstd ? zstdDecompressSync(payload) : payload;
    if (plain.length !== table.sizeOf(entry)) return undefined;
    core.slabs.keep(entry, plain);
    return core.slabs.bytes(entry);
  } catch {
    return undefined; // the asynchronous read reports the reason
  }
}

const unzstd = (payload: Buffer, sizeBytes: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    zstdDecompress(payload, { maxOutputLength: sizeBytes }, (error, plain) => (error ? reject(error) : resolve(plain)));
  });

/**
 * One record of the packed log, as bytes. Pure.
 *
 *   0 u32 CRC-32 of everything after it   4 u16 magic   6 u8 kind   7 u8 digest function and form
 *   8 u32 length of the body  12 u32 + 16 u32 sequence number  20 u32 access time  24 u32 kept until  28 u32 visible
 *   32 u32 segment and 36 u32 offset it was copied from, 0 if it was not   40 body, padded with zeros to a multiple
 *   of 8
 *
 * Numbers are little-endian; times are seconds since 1970. Sequence numbers grow along the log, so that what a failed
 * write left behind is never taken for what was written after it.
 */
import { crc32 } from "node:zlib";

export const headerBytes = 40;
const magic = 0x524d;

export const kinds = {
  /** Body: hash, u64 size of the plain bytes, the bytes. */
  blob: 1,
  /** A blob in a file. Body: hash, u64 size, u64 bytes on disk. */
  file: 2,
  /** Grants to the tenant in `visible`. Body: keys. */
  grants: 3,
  /** Evicted or removed. Body: keys. */
  gone: 4,
  /** Pinned until the header's time. Body: keys. */
  pins: 5,
  /** `visible` is the tenant's number. Body: its name. */
  tenant: 6,
  /** An entry of the ActionIndex. `visible` is the tenant's number. Body: key, u32 + u32 version, JSON. */
  named: 7,
  /** A removed entry. Body: key, u32 + u32 version. */
  unnamed: 8,
  /** Uses at the header's access time. Body: keys. */
  touches: 9,
} as const;

export const zstdForm = 0x10;

/** Where a record is. Records never change, so their position identifies their content. */
export type RecordPosition = { readonly segment: number; readonly offset: number };

export type Header = {
  readonly kind: number;
  readonly fn: number;
  readonly isZstd: boolean;
  readonly bodyBytes: number;
  readonly sequence: number;
  readonly accessSec: number;
  readonly keepSec: number;
  readonly visible: number;
  /** Set in a copy made by the janitor: the copy is ignored if the original no longer counts. */
  readonly movedFrom: RecordPosition | undefined;
};

export type NewHeader = Partial<Omit<Header, "bodyBytes" | "sequence">> & { readonly kind: number };

export const recordBytes = (bodyBytes: number): number => (headerBytes + bodyBytes + 7) & ~7;

/** Hashes are padded to a multiple of 8, so that what follows is aligned. */
export const paddedHashBytes = (hashBytes: number): number => (hashBytes + 7) & ~7;

/** The body must be in place already. */
export function sealRecord(
  target: Buffer,
  at: number,
  header: NewHeader,
  sizes: { readonly bodyBytes: number; readonly sequence: number },
): void {
  const { bodyBytes, sequence } = sizes;
  target.fill(0, at + headerBytes + bodyBytes, at + recordBytes(bodyBytes));
  target.writeUInt16LE(magic, at + 4);
  target[at + 6] = header.kind;
  target[at + 7] = (header.fn ?? 0) | (header.isZstd ? zstdForm : 0);
  target.writeUInt32LE(bodyBytes, at + 8);
  writeUint64(target, at + 12, sequence);
  target.writeUInt32LE(header.accessSec ?? 0, at + 20);
  target.writeUInt32LE(header.keepSec ?? 0, at + 24);
  target.writeUInt32LE((header.visible ?? 0) >>> 0, at + 28);
  target.writeUInt32LE(header.movedFrom?.segment ?? 0, at + 32);
  target.writeUInt32LE(header.movedFrom?.offset ?? 0, at + 36);
  target.writeUInt32LE(checksum(target, at, bodyBytes), at);
}

/** The state of a blob when its record is copied. */
export type Moved = {
  readonly accessSec: number;
  readonly keepSec: number;
  readonly visible: number;
  readonly from: { readonly segment: number; readonly offset: number };
};

/** Marks a record as a copy. It is valid once it is numbered. */
export function markMoved(target: Buffer, at: number, { accessSec, keepSec, visible, from }: Moved): void {
  target.writeUInt32LE(accessSec, at + 20);
  target.writeUInt32LE(keepSec, at + 24);
  target.writeUInt32LE(visible >>> 0, at + 28);
  target.writeUInt32LE(from.segment, at + 32);
  target.writeUInt32LE(from.offset, at + 36);
}

/** Sets the sequence number and checksum of a finished record; returns its length. */
export function numberRecord(target: Buffer, at: number, sequence: number): number {
  const bodyBytes = target.readUInt32LE(at + 8);
  writeUint64(target, at + 12, sequence);
  target.writeUInt32LE(checksum(target, at, bodyBytes), at);
  return recordBytes(bodyBytes);
}

const checksum = (bytes: Buffer, at: number, bodyBytes: number): number =>
  crc32(bytes.subarray(at + 4, at + headerBytes + bodyBytes));

/** Reads a field of an unverified header, for scans of many records. */
export const kindAt = (bytes: Buffer, at: number): number => bytes[at + 6] ?? 0;
export const functionAt = (bytes: Buffer, at: number): number => (bytes[at + 7] ?? 0) & 15;
export const recordBytesAt = (bytes: Buffer, at: number): number => recordBytes(bytes.readUInt32LE(at + 8));

/** The length that the record claims, unverified; 0 if there is no complete record. */
export function recordLength(bytes: Buffer, at: number, end: number): number {
  if (at + headerBytes > end || bytes.readUInt16LE(at + 4) !== magic) return 0;
  const length = recordBytesAt(bytes, at);
  return at + length > end ? 0 : length;
}

/** Whether the checksum of a complete record is correct. */
export const isRight = (bytes: Buffer, at: number): boolean =>
  checksum(bytes, at, bytes.readUInt32LE(at + 8)) === bytes.readUInt32LE(at);

/** The header at `at`, if a complete and valid record begins there. */
export function openRecord(bytes: Buffer, at: number, end: number = bytes.length): Header | undefined {
  const header = peekHeader(bytes, at, end);
  if (!header || at + recordBytes(header.bodyBytes) > end) return undefined;
  return isRight(bytes, at) ? header : undefined;
}

/** The unverified header, to learn how long the record is. */
export function peekHeader(bytes: Buffer, at: number, end: number = bytes.length): Header | undefined {
  if (at + headerBytes > end || bytes.readUInt16LE(at + 4) !== magic) return undefined;
  const form = bytes[at + 7] ?? 0;
  const segment = bytes.readUInt32LE(at + 32);
  return {
    kind: bytes[at + 6] ?? 0,
    fn: form & 15,
    isZstd: (form & zstdForm) !== 0,
    bodyBytes: bytes.readUInt32LE(at + 8),
    sequence: readUint64(bytes, at + 12),
    accessSec: bytes.readUInt32LE(at + 20),
    keepSec: bytes.readUInt32LE(at + 24),
    visible: bytes.readUInt32LE(at + 28),
    movedFrom: segment === 0 ? undefined : { segment, offset: bytes.readUInt32LE(at + 36) },
  };
}

export function writeUint64(target: Buffer, at: number, value: number): void {
  target.writeUInt32LE(value % 2 ** 32, at);
  target.writeUInt32LE(Math.floor(value / 2 ** 32), at + 4);
}

export const readUint64 = (bytes: Buffer, at: number): number =>
  bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;

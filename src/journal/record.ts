/**
 * A log record as bytes, the same in every store. A record is checked by itself (crc) and against its position (shard,
 * seq, and the hash of the record before it), so that a torn, flipped, lost or misplaced record is detected when it is
 * read (J3).
 *
 * Little-endian: 0 magic u32 | 4 crc u32 | 8 link u32 | 12 kind u32
 * 16 shard u32 | 20 length u32 | 24 epoch u64 | 32 seq u64 | 40 payload
 * The hash covers 16 to the end; the crc continues from the hash over magic, link and kind, so the payload is summed
 * once.
 */
import { crc32 } from "node:zlib";
import { assert } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Epoch, Seq } from "./journal.ts";

/** The last digit is the version of the encoding. */
const magic = 0x314c4d; // "ML1"
const kinds = { batch: 1, chunk: 2 } as const;
export const headerBytes = 40;

export type RecordKind = keyof typeof kinds;

/** The contents of a record, without its link. */
export type RecordBody = {
  readonly shard: ShardId;
  readonly epoch: Epoch;
  readonly seq: Seq;
  readonly payload: Uint8Array;
};

/** Where the record must be: the reader's expectation. */
export type RecordPosition = {
  readonly kind: RecordKind;
  readonly shard: ShardId;
  readonly seq: Seq;
  /** Hash of the record before; undefined if the reader starts here and cannot know it. */
  readonly link: number | undefined;
};

export type Decoded = RecordBody & { readonly hash: number };

export const recordSize = (payload: Uint8Array): number => headerBytes + payload.length;

export function encodeRecord(body: RecordBody, link: number, kind: RecordKind = "batch"): Uint8Array {
  const record = new Uint8Array(recordSize(body.payload));
  encodeUnlinked(record, body, kind);
  sealRecord(record, link);
  return record;
}

/** Writes everything but link and crc: a sender need not know the chain, nor compute the checksum. */
export function encodeUnlinked(target: Uint8Array, body: RecordBody, kind: RecordKind = "batch"): void {
  const { shard, epoch, seq, payload } = body;
  assert(target.length === recordSize(payload), "a record's target has the record's size");
  assert(Number.isInteger(shard) && shard >= 0 && shard <= 0xffffffff, "shard is a u32");
  assert(Number.isSafeInteger(epoch) && epoch >= 0, "epoch is a counter");
  assert(Number.isSafeInteger(seq) && seq >= 0, "seq is a counter");
  const view = viewOf(target);
  view.setUint32(0, magic, true);
  view.setUint32(12, kinds[kind], true);
  view.setUint32(16, shard, true);
  view.setUint32(20, payload.length, true);
  setU64(view, 24, epoch);
  setU64(view, 32, seq);
  target.set(payload, headerBytes);
}

/** Completes the record with link and crc; returns its hash, which is the next record's link. */
export function sealRecord(record: Uint8Array, link: number): number {
  const view = viewOf(record);
  view.setUint32(8, link, true);
  const hash = bodyHash(record);
  view.setUint32(4, wholeCrc(record, hash), true);
  return hash;
}

/** Shard, epoch and seq of an encoded record, unverified. */
export function peekRecord(record: Uint8Array): { shard: ShardId; epoch: Epoch; seq: Seq } {
  const view = viewOf(record);
  return { shard: view.getUint32(16, true), epoch: getU64(view, 24), seq: getU64(view, 32) };
}

/** Computed from the batch alone, so that its writer can recognise it at the tail. */
export function recordHash({ shard, epoch, seq, payload }: RecordBody): number {
  const head = new Uint8Array(headerBytes);
  const view = viewOf(head);
  view.setUint32(16, shard, true);
  view.setUint32(20, payload.length, true);
  setU64(view, 24, epoch);
  setU64(view, 32, seq);
  return crc32(payload, bodyHash(head));
}

/** The record, or a Fault "corrupt" that says how it differs from what was written there. */
export function decodeRecord(record: Uint8Array, place: RecordPosition): Decoded {
  const corrupt = (why: string): Fault =>
    new Fault("corrupt", "decode record", { why, shard: place.shard, seq: place.seq, sizeBytes: record.length });
  if (record.length < headerBytes) throw corrupt("shorter than a header");
  const view = viewOf(record);
  if (view.getUint32(0, true) !== magic) throw corrupt("unknown magic or version");
  const sizeBytes = headerBytes + view.getUint32(20, true);
  if (sizeBytes !== record.length) throw corrupt(`says ${sizeBytes} bytes`);
  const hash = bodyHash(record);
  if (view.getUint32(4, true) !== wholeCrc(record, hash)) throw corrupt("checksum");
  if (view.getUint32(12, true) !== kinds[place.kind]) throw corrupt("another kind of record");
  const { shard, epoch, seq } = peekRecord(record);
  if (shard !== place.shard || seq !== place.seq) throw corrupt(`record of shard ${shard} seq ${seq}`);
  if (place.link !== undefined && view.getUint32(8, true) !== place.link)
    throw corrupt("does not follow the one before");
  return { shard, epoch, seq, payload: record.subarray(headerBytes), hash };
}

const bodyHash = (record: Uint8Array): number => crc32(record.subarray(16));

function wholeCrc(record: Uint8Array, hash: number): number {
  return crc32(record.subarray(8, 16), crc32(record.subarray(0, 4), hash));
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function setU64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value % 0x100000000, true);
  view.setUint32(at + 4, Math.floor(value / 0x100000000), true);
}

const getU64 = (view: DataView, at: number): number =>
  view.getUint32(at, true) + view.getUint32(at + 4, true) * 0x100000000;

/**
 * FindMissingBlobs without creating a message or a string for any digest: the request is read in place, hashes are
 * converted to 32-bit words one after the other, all are looked up together, and missing digests are copied to the
 * answer as they came. For stores that know synchronously whether a blob exists.
 *
 * The functions replace the generated messages: `{ ...method, request: rawFindMissingRequest, ... }`.
 */
import { randomInt } from "node:crypto";
import { Fault } from "#base/fault.ts";
import {
  FindMissingBlobsRequest,
  FindMissingBlobsResponse,
} from "./generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { byteOfDigits } from "./hex-words.ts";
import type { Message } from "./message.ts";
import { Reader } from "./reader.ts";
import type { Writer } from "./writer.ts";

export type RawFindMissing = {
  readonly instanceName: string;
  /** A number of `DigestFunction_Value`. */
  readonly digestFunction: number;
  /** The whole request; valid only while it is being answered. */
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
};

const tags = { instanceName: 10, digest: 18, digestFunction: 24, hash: 10, sizeBytes: 16 } as const;

export const rawFindMissingRequest: Message<RawFindMissing> = {
  typeName: FindMissingBlobsRequest.typeName,
  isBrief: true,
  write: (message, to) => rawBytes(to, message.bytes.subarray(message.start, message.end)),
  /** Digests are skipped: the lookup reads them. */
  read(from, end) {
    const start = from.pos;
    const { bytes } = from;
    let instanceName = "";
    let digestFunction = 0;
    while (from.pos < end) {
      const tag = bytes[from.pos] as number;
      const length = bytes[from.pos + 1] as number;
      if (tag === tags.digest && length < 0x80 && from.pos + 2 + length <= end) {
        from.pos += 2 + length;
        continue;
      }
      const read = from.tag();
      if (read === tags.instanceName) instanceName = from.string();
      else if (read === tags.digestFunction) digestFunction = from.int32();
      else from.skip(read);
    }
    return { instanceName, digestFunction, bytes, start, end };
  },
};

/** An answer that is encoded already. */
export const rawFindMissingResponse: Message<Uint8Array> = {
  typeName: FindMissingBlobsResponse.typeName,
  write: (message, to) => rawBytes(to, message),
  read: (from, end) => {
    const bytes = from.bytes.subarray(from.pos, end);
    from.pos = end;
    return bytes;
  },
};

function rawBytes(to: Writer, bytes: Uint8Array): void {
  to.reserve(bytes.length);
  to.bytes.set(bytes, to.pos);
  to.pos += bytes.length;
}

/** The requested digests: the raw bytes of their hashes one after the other, aligned to words. */
export type RawDigests = {
  readonly hashes: Uint8Array<ArrayBuffer>;
  readonly sizes: Float64Array;
  readonly count: number;
};

export type RawLookup = {
  /** How many digits a hash has. */
  readonly hexLength: number;
  /** Sets `found[i]` to 1 for each blob that exists, and leaves the others. */
  find(digests: RawDigests, found: Uint8Array): void;
  /** Called for a digest of size 0, with its hash in hex: throws unless that is the hash of the empty blob. */
  readonly checkEmpty: (hash: string) => void;
};

/**
 * The answer as bytes, valid until the next call. Throws a Fault "invalid" for anything that is not a digest of the
 * function, whatever else is requested: half an answer is useless.
 */
export function answerRaw(request: RawFindMissing, lookup: RawLookup): Uint8Array {
  const { bytes, start, end } = request;
  // A digest of the shortest kind takes its hash, two bytes before that, and its own tag and length.
  asked.begin(Math.ceil((end - start) / (lookup.hexLength + 4)), lookup.hexLength);
  const view = new DataView(bytes.buffer, bytes.byteOffset, end);
  readDigests(request, view, lookup);
  lookup.find(asked, asked.found);
  told.begin(asked.count);
  answer.begin(end - start);
  for (let i = 0; i < asked.count; i += 1)
    if (asked.found[i] === 0 && !told.before(bytes, i))
      answer.add(view, asked.starts[i] as number, asked.ends[i] as number);
  return answer.whole;
}

/** It contains only digests of the request, each once, so its length is bounded by the request's. */
class Answer {
  #view = new DataView(new ArrayBuffer(64 * 1024));
  #length = 0;

  begin(bytesMax: number): void {
    this.#length = 0;
    const capacity = this.#view.byteLength;
    if (capacity < bytesMax || capacity > Math.max(bytesMax, answerKeptBytesMax))
      this.#view = new DataView(new ArrayBuffer(Math.max(64 * 1024, bytesMax)));
  }

  /** Copies eight bytes at a time, the last eight perhaps overlapping: a call for each digest would take longer. */
  add(from: DataView, start: number, end: number): void {
    const to = this.#view;
    const ahead = this.#length - start;
    const last = end - 8;
    for (let at = start; at < last; at += 8) to.setBigInt64(at + ahead, from.getBigInt64(at, true), true);
    to.setBigInt64(last + ahead, from.getBigInt64(last, true), true);
    this.#length = end + ahead;
  }

  get whole(): Uint8Array {
    return new Uint8Array(this.#view.buffer, 0, this.#length);
  }
}

const answerKeptBytesMax = 4 * 1024 * 1024;
const answer = new Answer();

/** The requested digests, laid out for the lookup; the memory is reused for the next call. */
class RequestedDigests implements RawDigests {
  hashes = new Uint8Array(0);
  words = new Uint32Array(0);
  sizes = new Float64Array(0);
  /** Where each digest begins in the request, with its tag; and where its hash does. */
  starts = new Int32Array(0);
  ends = new Int32Array(0);
  places = new Int32Array(0);
  found = new Uint8Array(0);
  count = 0;
  hexLength = 0;

  begin(countMax: number, hexLength: number): void {
    this.count = 0;
    this.hexLength = hexLength;
    const capacity = this.sizes.length;
    if (
      capacity < countMax ||
      this.hashes.length < (countMax * hexLength) / 2 ||
      capacity > Math.max(countMax, countKeptMax)
    )
      this.#allot(Math.max(1_024, countMax), hexLength);
  }

  #allot(count: number, hexLength: number): void {
    this.hashes = new Uint8Array((count * hexLength) / 2);
    this.words = new Uint32Array(this.hashes.buffer);
    this.sizes = new Float64Array(count);
    this.starts = new Int32Array(count);
    this.ends = new Int32Array(count);
    this.places = new Int32Array(count);
    this.found = new Uint8Array(count);
  }
}

/** Memory for more digests than this is not kept for the next call. */
const countKeptMax = 64 * 1024;
const asked = new RequestedDigests();

/** Puts the requested digests into `asked`; the empty blob is left out, because it always exists. */
function readDigests({ bytes, start, end }: RawFindMissing, view: DataView, lookup: RawLookup): void {
  const from = new Reader(end === bytes.length ? bytes : bytes.subarray(0, end));
  const { hexLength } = lookup;
  from.pos = start;
  while (from.pos < end) {
    const at = from.pos;
    const sizeAt = at + 4 + hexLength;
    // Nearly all have this layout, with a size of up to three bytes.
    const isUsual = sizeAt + 4 < end && bytes[at] === tags.digest && bytes[at + 2] === tags.hash;
    if (isUsual && bytes[at + 3] === hexLength && bytes[sizeAt] === tags.sizeBytes) {
      let sizeBytes = bytes[sizeAt + 1] as number;
      let digestEnd = sizeAt + 2;
      if (sizeBytes > 0x7f) sizeBytes = (sizeBytes & 0x7f) | ((bytes[digestEnd++] as number) << 7);
      if (sizeBytes > 0x3fff) sizeBytes = (sizeBytes & 0x3fff) | ((bytes[digestEnd++] as number) << 14);
      if (sizeBytes > 0 && sizeBytes < 1 << 21 && digestEnd === at + 2 + (bytes[at + 1] as number)) {
        take(view, at, digestEnd, at + 4, sizeBytes);
        from.pos = digestEnd;
        continue;
      }
    }
    const tag = from.tag();
    if (tag === tags.digest) readUnusual(from, view, at, lookup);
    else from.skip(tag);
  }
}

/** In any order, with unknown fields, of any size. */
function readUnusual(from: Reader, view: DataView, at: number, lookup: RawLookup): void {
  const { bytes } = from;
  const { hexLength } = lookup;
  const end = from.length() + from.pos;
  let sizeBytes = 0;
  let hashAt = -1;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === tags.hash) {
      const length = from.length();
      if (length !== hexLength) throw notADigest("a hash of another length");
      hashAt = from.pos;
      from.pos += length;
    } else if (tag === tags.sizeBytes) sizeBytes = from.int64();
    else from.skip(tag);
  }
  if (from.pos !== end) from.fail("a field goes beyond its message");
  if (hashAt === -1) throw notADigest("no hash");
  if (sizeBytes < 0) throw notADigest("a negative size");
  take(view, at, end, hashAt, sizeBytes);
  if (sizeBytes > 0) return;
  asked.count -= 1;
  lookup.checkEmpty(bytes.toString("latin1", hashAt, hashAt + hexLength));
}

/** Eight digits at a time become a word; at the end one check tells whether all of them were digits. */
function take(view: DataView, start: number, end: number, hashAt: number, sizeBytes: number): void {
  const { words, hexLength } = asked;
  const i = asked.count;
  const count = hexLength >> 3;
  let all = 0;
  for (let word = i * count, at = hashAt, last = word + count; word < last; word += 1, at += 8) {
    const four = view.getInt32(at, true);
    const more = view.getInt32(at + 4, true);
    const [a, b] = [byteOfDigits[four & 0xffff] as number, byteOfDigits[four >>> 16] as number];
    const [c, d] = [byteOfDigits[more & 0xffff] as number, byteOfDigits[more >>> 16] as number];
    all |= a | b | c | d;
    words[word] = a | (b << 8) | (c << 16) | (d << 24);
  }
  if (all > 0xff) throw notADigest("a hash that is not in lower-case hex digits");
  asked.sizes[i] = sizeBytes;
  asked.starts[i] = start;
  asked.ends[i] = end;
  asked.places[i] = hashAt;
  asked.found[i] = 0;
  asked.count = i + 1;
}

const notADigest = (why: string): Fault => new Fault("invalid", "read digest", { why });

/** The digests that are in the answer already: each is listed once, however often it was requested. */
class AnsweredDigests {
  /** The number of a digest plus one; 0 for an empty slot. */
  #slots = new Int32Array(1024);
  #mask = 0;

  /** For a request of at most this many digests. */
  begin(countMax: number): void {
    let slots = 64;
    while (slots < countMax * 2) slots *= 2;
    this.#mask = slots - 1;
    if (slots <= this.#slots.length && this.#slots.length <= Math.max(slots, slotsKeptMax))
      this.#slots.fill(0, 0, slots);
    else this.#slots = new Int32Array(slots);
  }

  /** Whether the digest with this number is in the answer; from now on it is. Compared in the request's bytes. */
  before(bytes: Uint8Array, number: number): boolean {
    const { sizes, places, hexLength } = asked;
    const place = places[number] as number;
    let slot = keyOf(number, hexLength >> 3) & this.#mask;
    for (let one = this.#slots[slot] as number; one !== 0; one = this.#slots[slot] as number) {
      if (sizes[one - 1] === sizes[number] && areEqual(bytes, place, places[one - 1] as number, hexLength)) return true;
      slot = (slot + 1) & this.#mask;
    }
    this.#slots[slot] = number + 1;
    return false;
  }
}

/** More than this is not kept for the next call. */
const slotsKeptMax = 256 * 1024;
const told = new AnsweredDigests();

function areEqual(bytes: Uint8Array, one: number, other: number, length: number): boolean {
  for (let i = 0; i < length; i += 1) if (bytes[one + i] !== bytes[other + i]) return false;
  return true;
}

/** Clients choose the hashes, so a secret must decide into which slot they fall. */
const secret = randomInt(1, 0x7fff_ffff);

function keyOf(number: number, count: number): number {
  const { words } = asked;
  let key = secret;
  for (let i = number * count, end = i + count; i < end; i += 1) {
    key = Math.imul(key ^ (words[i] as number), 0x9e3779b1);
    key ^= key >>> 15;
  }
  return key;
}

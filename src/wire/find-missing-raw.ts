/**
 * FindMissingBlobs without a message or a text for any digest: the request is walked where it lies, hashes become bytes
 * in one scratch place, and what is missing is copied to the answer as it came. For stores that say at once whether a
 * blob is there.
 *
 * The functions stand in for the generated messages: `{ ...method, request: rawFindMissingRequest, ... }`.
 */
import { randomInt } from "node:crypto";
import { Fault } from "#base/fault.ts";
import {
  FindMissingBlobsRequest,
  FindMissingBlobsResponse,
} from "./generated/build/bazel/remote/execution/v2/remote_execution.ts";
import type { Message } from "./message.ts";
import { Reader } from "./reader.ts";
import { Writer } from "./writer.ts";

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
  write: (message, to) => rawBytes(to, message.bytes.subarray(message.start, message.end)),
  /** Digests are passed over: they are read by whoever looks them up. */
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

/** An answer that has been laid out already. */
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
  to.room(bytes.length);
  to.bytes.set(bytes, to.pos);
  to.pos += bytes.length;
}

export type RawLookup = {
  /** How many digits a hash has. */
  readonly hexLength: number;
  /** Whether the blob is there; its hash lies at the start of `hash`. */
  has(hash: Uint8Array, sizeBytes: number): boolean;
  /** Called for a digest of no bytes, with its hash in hex: throws unless that is the hash of nothing. */
  checkEmpty(hash: string): void;
};

const nibbles = new Uint8Array(256).fill(0xff);
for (const [i, digit] of Array.from("0123456789abcdef").entries()) nibbles[digit.charCodeAt(0)] = i;

const scratch = new Uint8Array(64);
const words = new Int32Array(scratch.buffer);
const answer = new Writer(Buffer.allocUnsafe(64 * 1024));
const answerKeptBytesMax = 4 * 1024 * 1024;

/**
 * The answer as bytes, valid until the next call. Throws a Fault "invalid" for anything that is no digest of the
 * function, whatever else is asked for: half an answer helps nobody.
 */
export function answerRaw({ bytes, start, end }: RawFindMissing, lookup: RawLookup): Uint8Array {
  if (answer.bytes.length > answerKeptBytesMax) answer.bytes = Buffer.allocUnsafe(64 * 1024);
  answer.pos = 0;
  // A digest of the shortest kind takes its hash, two bytes before that, and its own tag and length.
  told.begin(Math.ceil((end - start) / (lookup.hexLength + 4)));
  const from = new Reader(end === bytes.length ? bytes : bytes.subarray(0, end));
  from.pos = start;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag !== tags.digest) {
      from.skip(tag);
      continue;
    }
    const at = from.pos;
    const length = from.length();
    const digestAt = from.pos;
    const sizeBytes = readDigest(from, digestAt + length, lookup);
    if (sizeBytes === 0 || lookup.has(scratch, sizeBytes)) continue;
    if (told.before(bytes, hashPlace, lookup.hexLength, sizeBytes)) continue;
    const whole = digestAt + length - at + 1;
    answer.room(whole);
    answer.bytes[answer.pos] = tags.digest;
    bytes.copy(answer.bytes, answer.pos + 1, at, digestAt + length);
    answer.pos += whole;
  }
  return answer.bytes.subarray(0, answer.pos);
}

/** Where the hash that was read last lies. */
let hashPlace = 0;

/** Leaves the hash in `scratch` and its place in `hashPlace`; answers the size. */
function readDigest(from: Reader, end: number, lookup: RawLookup): number {
  const { bytes } = from;
  let sizeBytes = 0;
  let hashAt = -1;
  while (from.pos < end) {
    const tag = from.tag();
    if (tag === tags.hash) {
      const length = from.length();
      if (length !== lookup.hexLength) throw notADigest("a hash of another length");
      hashAt = from.pos;
      from.pos += length;
    } else if (tag === tags.sizeBytes) sizeBytes = from.int64();
    else from.skip(tag);
  }
  if (from.pos !== end) from.fail("a field goes beyond its message");
  if (hashAt === -1) throw notADigest("no hash");
  hashPlace = hashAt;
  if (sizeBytes < 0) throw notADigest("a negative size");
  let wrong = 0;
  for (let i = 0, half = lookup.hexLength / 2; i < half; i += 1) {
    const high = nibbles[bytes[hashAt + 2 * i] as number] as number;
    const low = nibbles[bytes[hashAt + 2 * i + 1] as number] as number;
    wrong |= high | low;
    scratch[i] = (high << 4) | low;
  }
  if (wrong > 0x0f) throw notADigest("a hash that is not in small hex digits");
  if (sizeBytes === 0) lookup.checkEmpty(bytes.toString("latin1", hashAt, hashAt + lookup.hexLength));
  return sizeBytes;
}

const notADigest = (why: string): Fault => new Fault("invalid", "read digest", { why });

/**
 * Which digests are in the answer already: each is told once, however often it was asked for. Its memory is kept from
 * one call to the next; digests are compared where they lie in the request.
 */
class ToldDigests {
  /** One more than the number of a digest; 0 where there is none. */
  #slots = new Int32Array(1024);
  #mask = 0;
  /** Where the hash of each lies in the request, and the key that it was put by. */
  #places = new Int32Array(512);
  #keys = new Int32Array(512);
  #sizes = new Float64Array(512);
  #count = 0;

  /** For a request of so many digests at most. */
  begin(countMax: number): void {
    let slots = 64;
    while (slots < countMax * 2) slots *= 2;
    this.#count = 0;
    this.#mask = slots - 1;
    if (slots <= this.#slots.length && this.#slots.length <= Math.max(slots, slotsKeptMax)) {
      this.#slots.fill(0, 0, slots);
      return;
    }
    this.#slots = new Int32Array(slots);
    this.#places = new Int32Array(slots / 2);
    this.#keys = new Int32Array(slots / 2);
    this.#sizes = new Float64Array(slots / 2);
  }

  /** Whether the digest in `scratch`, whose hash lies at `place` of the request, was told; it is from now on. */
  before(bytes: Uint8Array, place: number, hexLength: number, sizeBytes: number): boolean {
    const key = keyOfScratch(hexLength / 2);
    let slot = key & this.#mask;
    for (let told = this.#slots[slot] as number; told !== 0; told = this.#slots[slot] as number) {
      const isSame = this.#keys[told - 1] === key && this.#sizes[told - 1] === sizeBytes;
      if (isSame && areEqual(bytes, place, this.#places[told - 1] as number, hexLength)) return true;
      slot = (slot + 1) & this.#mask;
    }
    this.#places[this.#count] = place;
    this.#keys[this.#count] = key;
    this.#sizes[this.#count] = sizeBytes;
    this.#count += 1;
    this.#slots[slot] = this.#count;
    return false;
  }
}

/** More than this is not kept for the next call. */
const slotsKeptMax = 256 * 1024;
const told = new ToldDigests();

function areEqual(bytes: Uint8Array, one: number, other: number, length: number): boolean {
  for (let i = 0; i < length; i += 1) if (bytes[one + i] !== bytes[other + i]) return false;
  return true;
}

/** Clients choose the hashes, so where they fall must be none of their business. */
const secret = randomInt(1, 0x7fff_ffff);

function keyOfScratch(hashBytes: number): number {
  let key = secret;
  for (let i = 0; i < hashBytes >> 2; i += 1) {
    key = Math.imul(key ^ (words[i] as number), 0x9e3779b1);
    key ^= key >>> 15;
  }
  return key;
}

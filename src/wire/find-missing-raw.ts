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
const answer = new Writer(Buffer.allocUnsafe(64 * 1024));
const answerKeptBytesMax = 4 * 1024 * 1024;

/**
 * The answer as bytes, valid until the next call. Throws a Fault "invalid" for anything that is no digest of the
 * function, whatever else is asked for: half an answer helps nobody.
 */
export function answerRaw({ bytes, start, end }: RawFindMissing, lookup: RawLookup): Uint8Array {
  if (answer.bytes.length > answerKeptBytesMax) answer.bytes = Buffer.allocUnsafe(64 * 1024);
  answer.pos = 0;
  const told = new ToldDigests();
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
    if (sizeBytes === 0 || lookup.has(scratch, sizeBytes) || told.before(sizeBytes, lookup.hexLength / 2)) continue;
    const whole = digestAt + length - at + 1;
    answer.room(whole);
    answer.bytes[answer.pos] = tags.digest;
    bytes.copy(answer.bytes, answer.pos + 1, at, digestAt + length);
    answer.pos += whole;
  }
  return answer.bytes.subarray(0, answer.pos);
}

/** Leaves the hash in `scratch`; answers the size. */
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

/** Which digests are in the answer already: each is told once, however often it was asked for. */
class ToldDigests {
  #slots = new Int32Array(0);
  #hashes = new Uint8Array(0);
  #sizes = new Float64Array(0);
  #count = 0;

  /** Whether the digest in `scratch` was there before; it is from now on. */
  before(sizeBytes: number, hashBytes: number): boolean {
    if (this.#count * 2 >= this.#slots.length) this.#grow(hashBytes);
    const mask = this.#slots.length - 1;
    let slot = keyAt(scratch, 0, hashBytes) & mask;
    for (; this.#slots[slot] !== 0; slot = (slot + 1) & mask)
      if (this.#isAt((this.#slots[slot] as number) - 1, sizeBytes, hashBytes)) return true;
    this.#slots[slot] = this.#count + 1;
    this.#hashes.set(scratch.subarray(0, hashBytes), this.#count * hashBytes);
    this.#sizes[this.#count] = sizeBytes;
    this.#count += 1;
    return false;
  }

  #isAt(index: number, sizeBytes: number, hashBytes: number): boolean {
    if (this.#sizes[index] !== sizeBytes) return false;
    const at = index * hashBytes;
    for (let i = 0; i < hashBytes; i += 1) if (this.#hashes[at + i] !== scratch[i]) return false;
    return true;
  }

  #grow(hashBytes: number): void {
    const places = Math.max(64, this.#slots.length * 2);
    const hashes = new Uint8Array((places / 2) * hashBytes);
    const sizes = new Float64Array(places / 2);
    hashes.set(this.#hashes);
    sizes.set(this.#sizes);
    this.#hashes = hashes;
    this.#sizes = sizes;
    this.#slots = new Int32Array(places);
    for (let index = 0; index < this.#count; index += 1) {
      let slot = keyAt(hashes, index * hashBytes, hashBytes) & (places - 1);
      while (this.#slots[slot] !== 0) slot = (slot + 1) & (places - 1);
      this.#slots[slot] = index + 1;
    }
  }
}

/** Clients choose the hashes, so where they fall must be none of their business. */
const secret = randomInt(1, 0x7fff_ffff);

function keyAt(bytes: Uint8Array, at: number, hashBytes: number): number {
  let key = secret;
  for (let i = at; i < at + hashBytes; i += 4) {
    const word =
      (bytes[i] as number) |
      ((bytes[i + 1] as number) << 8) |
      ((bytes[i + 2] as number) << 16) |
      ((bytes[i + 3] as number) << 24);
    key = Math.imul(key ^ word, 0x9e3779b1);
    key ^= key >>> 15;
  }
  return key;
}

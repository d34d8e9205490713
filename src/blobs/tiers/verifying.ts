/**
 * Bytes from a place that is not ours, checked on their way: the last part of a blob is handed out only when all of
 * them have the digest, so nobody ever holds a whole blob that is wrong (B1). What does not fit is a Fault "corrupt".
 */
import { digestText, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { createHasher, partsOf } from "#blobs/hashing.ts";
import { canonical, checkedOffset } from "#blobs/sha256.ts";
import type { BlobStore, Range } from "#blobs/store.ts";
import { packed } from "#blobs/zstd.ts";

/** `whole` begins with the blob's first byte; the parts that are handed on are those of the range. */
export async function* verifiedRange(
  digest: Digest,
  whole: AsyncIterable<Uint8Array>,
  { offset, length = Infinity }: Range = { offset: 0 },
): AsyncGenerator<Uint8Array> {
  const { fn, hash, sizeBytes } = partsOf(digest);
  const hasher = createHasher(fn);
  let at = 0;
  let held: Uint8Array | undefined;
  for await (const part of whole) {
    if (at + part.length > sizeBytes) throw wrong(digest, "more bytes than the digest says");
    hasher.update(part);
    const from = Math.max(0, offset - at);
    const to = Math.min(part.length, offset + length - at);
    at += part.length;
    if (from >= to) continue;
    if (held) yield held;
    held = Uint8Array.from(part.subarray(from, to)); // ours, for as long as it is held back
  }
  const got = digestText(fn, hasher.hex(), at);
  if (got !== digestText(fn, hash, sizeBytes)) throw wrong(digest, at < sizeBytes ? "it is cut short" : "other bytes");
  if (held) yield held;
}

const wrong = (digest: Digest, why: string): Fault => new Fault("corrupt", "read blob", { digest, why });

/** A store whose reads cannot be trusted, with reads that can. */
export const verifyingReads = (blobs: BlobStore): BlobStore => ({
  missing: (digests) => blobs.missing(digests),
  write: (digest, source, form) => blobs.write(digest, source, form),
  pin: (digests, forMs) => blobs.pin(digests, forMs),
  async *read(digest, range = { offset: 0 }, form) {
    const name = canonical(digest);
    checkedOffset(name, range.offset);
    const parts = verifiedRange(name, blobs.read(name), range);
    yield* form === "zstd" ? packed(parts) : parts;
  },
});

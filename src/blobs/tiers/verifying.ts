/**
 * Bytes from a place that is not ours, checked on their way: the last part of a blob is handed out only when all of
 * them have the digest, so nobody ever holds a whole blob that is wrong (B1). What does not fit is a Fault "corrupt".
 */
import { digestText, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { createHasher, partsOf } from "#blobs/hashing.ts";
import { readsFrom } from "#blobs/plain-reads.ts";
import { extend, extendPrompt } from "#blobs/extend.ts";
import type { BlobStore, Range } from "#blobs/store.ts";

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

/**
 * Checks every read of a store that may return wrong bytes. It lends no file and gives no bytes from memory, because
 * those would reach the reader unchecked.
 */
export const verifyingReads = (blobs: BlobStore): BlobStore =>
  extend(blobs, {
    file: undefined,
    prompt: extendPrompt(blobs.prompt, { bytes: () => undefined }),
    read: readsFrom((digest, range) => verifiedRange(digest, blobs.read(digest), range)),
  });

/**
 * Verifies bytes from an untrusted source while they pass: the last part is handed out only when the whole blob has the
 * digest, so that no reader ever gets a complete wrong blob (B1). A mismatch is a Fault "corrupt".
 */
import { digestText, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { createHasher, partsOf } from "#blobs/hashing.ts";
import { readsFrom } from "#blobs/plain-reads.ts";
import { extend, extendPrompt } from "#blobs/extend.ts";
import type { BlobStore, Range } from "#blobs/store.ts";

/** `whole` begins at the blob's first byte; only the parts within the range are yielded. */
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
    held = Uint8Array.from(part.subarray(from, to)); // a copy, because it is held back beyond the next read
  }
  const got = digestText(fn, hasher.hex(), at);
  if (got !== digestText(fn, hash, sizeBytes))
    throw wrong(digest, at < sizeBytes ? "it is truncated" : "the bytes have another digest");
  if (held) yield held;
}

const wrong = (digest: Digest, why: string): Fault => new Fault("corrupt", "read blob", { digest, why });

/**
 * Checks every read of a store that may return wrong bytes. It lends no files and gives no bytes from memory, because
 * those would reach the reader unchecked.
 */
export const verifyingReads = (blobs: BlobStore): BlobStore =>
  extend(blobs, {
    file: undefined,
    path: undefined,
    part: undefined,
    prompt: extendPrompt(blobs.prompt, { bytes: () => undefined }),
    read: readsFrom((digest, range) => verifiedRange(digest, blobs.read(digest), range)),
  });

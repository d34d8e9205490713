/** The `read` of a store that can only produce plain bytes: checks the request, and compresses where zstd is wanted. */
import type { Digest } from "#base/digest.ts";
import { canonical, checkedOffset } from "./sha256.ts";
import type { BlobStore, Range } from "./store.ts";
import { packed } from "./zstd.ts";

/** `plain` gets the digest in its one spelling and a range that begins inside the blob. */
export const readsFrom = (plain: (digest: Digest, range: Range) => AsyncIterable<Uint8Array>): BlobStore["read"] =>
  async function* read(digest, range = { offset: 0 }, form) {
    const name = canonical(digest);
    checkedOffset(name, range.offset);
    const parts = plain(name, range);
    yield* form === "zstd" ? packed(parts) : parts;
  };

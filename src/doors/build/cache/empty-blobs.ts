/** A store as clients see it: they never upload the empty blob, and for them it always exists. */
import type { BlobStore } from "#blobs/store.ts";
import { isEmpty } from "#doors/build/digests.ts";

export function withEmpty(blobs: BlobStore): BlobStore {
  const prompt = blobs.prompt;
  return {
    ...blobs,
    async missing(digests) {
      const some = digests.some(isEmpty) ? digests.filter((digest) => !isEmpty(digest)) : digests;
      return some.length === 0 ? [] : await blobs.missing(some);
    },
    async *read(digest, range, form) {
      if (!isEmpty(digest)) yield* blobs.read(digest, range, form);
    },
    write: (digest, bytes, form) => blobs.write(digest, bytes, form),
    pin: (digests, forMs) => blobs.pin(digests, forMs),
    ...(prompt && {
      prompt: {
        has: (fn, hash, at, sizeBytes) => sizeBytes === 0 || prompt.has(fn, hash, at, sizeBytes),
        bytes: (digest) => (isEmpty(digest) ? noBytes : prompt.bytes(digest)),
      },
    }),
  };
}

const noBytes = new Uint8Array();

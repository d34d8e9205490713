/** Clients never upload the empty blob and expect it to be there always: this decorator answers for it. */
import { extend, extendPrompt } from "#blobs/extend.ts";
import type { BlobStore, Prompt } from "#blobs/store.ts";
import { emptyHash, isEmpty } from "#doors/build/digests.ts";

export function withEmpty(blobs: BlobStore): BlobStore {
  return extend(blobs, {
    async missing(digests) {
      const some = digests.some(isEmpty) ? digests.filter((digest) => !isEmpty(digest)) : digests;
      return some.length === 0 ? [] : await blobs.missing(some);
    },
    async *read(digest, range, form) {
      if (!isEmpty(digest)) yield* blobs.read(digest, range, form);
    },
    prompt: blobs.prompt && promptWithEmpty(blobs.prompt),
  });
}

function promptWithEmpty(prompt: Prompt): Prompt | undefined {
  return extendPrompt(prompt, {
    has: (fn, hash, at, sizeBytes) => sizeBytes === 0 || prompt.has(fn, hash, at, sizeBytes),
    bytes: (digest) => (isEmpty(digest) ? noBytes : prompt.bytes(digest)),
    hasMany:
      prompt.hasMany &&
      ((fn, batch, found) => {
        prompt.hasMany?.(fn, batch, found);
        for (let i = 0; i < batch.count; i += 1) if (batch.sizes[i] === 0) found[i] = 1;
      }),
    sizeOf: prompt.sizeOf && ((fn, hash) => (hash === emptyHash(fn) ? 0 : prompt.sizeOf?.(fn, hash))),
  });
}

const noBytes = new Uint8Array();

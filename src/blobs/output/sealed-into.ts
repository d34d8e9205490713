/** Streams on this machine whose sealed bytes are needed elsewhere: in the store that results are pinned in. */
import type { BlobStore } from "#blobs/store.ts";
import type { Streams } from "#blobs/streams.ts";

export const sealedInto = (streams: Streams, blobs: BlobStore): Streams => ({
  ...streams,
  async seal(key) {
    const digest = await streams.seal(key);
    const [missing] = await blobs.missing([digest]);
    if (missing !== undefined) await blobs.write(digest, streams.read(key, 0, new AbortController().signal));
    return digest;
  },
});

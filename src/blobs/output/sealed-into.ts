/** Streams whose sealed bytes are needed elsewhere, too: where results are pinned, or where their tenant reads them. */
import type { BlobStore } from "#blobs/store.ts";
import type { StreamKey, Streams } from "#blobs/streams.ts";

export const sealedInto = (streams: Streams, blobsOf: (key: StreamKey) => BlobStore): Streams => ({
  ...streams,
  async seal(key) {
    const digest = await streams.seal(key);
    const blobs = blobsOf(key);
    const [missing] = await blobs.missing([digest]);
    if (missing !== undefined) await blobs.write(digest, streams.read(key, 0, new AbortController().signal));
    return digest;
  },
});

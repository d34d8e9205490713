/** A result may name blobs of either store: those missing in the first are pinned in the second. */
import type { BlobStore } from "#blobs/store.ts";

type Pins = Pick<BlobStore, "pin">;

export const pinEither = (first: Pins, second: Pins): Pins => ({
  async pin(digests, forMs) {
    const one = await first.pin(digests, forMs);
    if (!("missing" in one)) return one;
    const elsewhere = new Set(one.missing);
    // A pin with missing digests pins none, so pin the rest again.
    const rest = digests.filter((digest) => !elsewhere.has(digest));
    const [here, there] = await Promise.all([
      rest.length > 0 ? first.pin(rest, forMs) : undefined,
      second.pin(one.missing, forMs),
    ]);
    const missing = [here, there].flatMap((pin) => (pin && "missing" in pin ? pin.missing : []));
    if (missing.length > 0) return { missing };
    const times = [here, there].flatMap((pin) => (pin && "pinnedForMs" in pin ? [pin.pinnedForMs] : []));
    return { digests, pinnedForMs: Math.min(...times) };
  },
});

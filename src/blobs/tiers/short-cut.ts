/**
 * Places nearer than the tier that may have a blob, such as a peer's disk: asked first, believed never. Whether a blob
 * exists, for this tenant, is the tier's word before anybody else is asked (B3, B5), and what comes from a short cut is
 * checked by whoever reads it there (B1). One that fails or lies is left alone for a while.
 */
import type { Clock } from "#base/clock.ts";
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { canonical } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import { packed } from "#blobs/zstd.ts";
import type { ReadOnly } from "./http.ts";
import { bytesOf } from "./http-call.ts";

export type ShortCutOptions = {
  readonly clock: Clock;
  readonly far: BlobStore & { readonly isDead?: boolean };
  /** In the order in which they are asked; a function where they come and go. */
  readonly shortCuts: (digest: Digest) => readonly ReadOnly[];
  readonly leftAloneMs?: number;
};

/** So much is held until all of it was found right; then there is a way back. */
const heldBytes = 4 * 1024 * 1024;

export function withShortCuts(options: ShortCutOptions): BlobStore & { readonly isDead: boolean } {
  const { clock, far, shortCuts, leftAloneMs = 30_000 } = options;
  const backAtMs = new WeakMap<ReadOnly, number>();
  const failed = (shortCut: ReadOnly): void => void backAtMs.set(shortCut, clock.monotonicMs() + leftAloneMs);

  async function* whole(digest: Digest): AsyncGenerator<Uint8Array> {
    for (const shortCut of shortCuts(digest)) {
      if ((backAtMs.get(shortCut) ?? 0) > clock.monotonicMs()) continue;
      let isBegun = false;
      try {
        const parts = shortCut.read(digest);
        if (digestSizeBytes(digest) <= heldBytes) return yield await bytesOf(parts, heldBytes);
        for await (const part of parts) {
          isBegun = true;
          yield part;
        }
        return;
      } catch (error) {
        if (!isFault(error)) throw error;
        if (error.code !== "not-found") failed(shortCut);
        // What was handed out may be wrong and cannot be taken back: whoever reads has to begin anew.
        if (isBegun) throw new Fault("unavailable", "read blob", { digest, why: "a short cut has failed" }, error);
      }
    }
    yield* far.read(digest);
  }

  return {
    get isDead() {
      return far.isDead === true;
    },
    missing: (digests) => far.missing(digests),
    write: (digest, source, form) => far.write(digest, source, form),
    pin: (digests, forMs) => far.pin(digests, forMs),
    async *read(digest, range, form) {
      const name = canonical(digest);
      if (range && (range.offset > 0 || range.length !== undefined)) return yield* far.read(name, range, form);
      if ((await far.missing([name])).length > 0) throw new Fault("not-found", "read blob", { digest: name });
      yield* form === "zstd" ? packed(whole(name)) : whole(name);
    },
  };
}

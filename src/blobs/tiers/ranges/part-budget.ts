/** How much of a blob is read in parts before it is cheaper to fetch the blob and keep a copy. */
import { digestSizeBytes, type Digest } from "#base/digest.ts";

/** Of the blob's bytes, counted since it was last forgotten. */
const share = 1 / 8;
const blobsMax = 1_000;

export class PartBudget {
  readonly #readBytes = new Map<Digest, number>();

  take(digest: Digest, bytes: number): boolean {
    const read = (this.#readBytes.get(digest) ?? 0) + bytes;
    if (read > digestSizeBytes(digest) * share) return false;
    this.#readBytes.delete(digest);
    this.#readBytes.set(digest, read);
    for (const oldest of this.#readBytes.keys()) if (this.#readBytes.size > blobsMax) this.#readBytes.delete(oldest);
    return true;
  }
}

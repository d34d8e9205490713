/**
 * Places nearer than the tier that may have a blob, such as a peer's disk: asked first, believed never. Whether a blob
 * exists, for this tenant, is the tier's word before anybody else is asked (B3, B5), and what comes from a short cut is
 * checked by whoever reads it there (B1). One that fails or lies is left alone for a while.
 */
import type { Clock } from "#base/clock.ts";
import { digestSizeBytes, type Digest, type DigestFunction } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { createHasher, partsOf, type Hasher } from "#blobs/hashing.ts";
import { canonical } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import { packed } from "#blobs/zstd.ts";
import type { ReadOnly } from "./http.ts";
import { bytesOf } from "./s3/http-call.ts";

export type ShortCutOptions = {
  readonly clock: Clock;
  readonly far: BlobStore & { readonly isDead?: boolean };
  /** In the order in which they are asked; a function where they come and go. */
  readonly shortCuts: (digest: Digest) => readonly ReadOnly[];
  readonly leftAloneMs?: number;
};

/** So much is held until all of it was found right; then there is a way back. */
const heldBytes = 4 * 1024 * 1024;

/** What was handed out of a blob before it was known to be right. */
class Beginning {
  readonly #digest: Digest;
  readonly #fn: DigestFunction;
  #hasher: Hasher | undefined;
  sizeBytes = 0;
  isWrong = false;

  constructor(digest: Digest) {
    this.#digest = digest;
    this.#fn = partsOf(digest).fn;
  }

  add(bytes: Uint8Array): void {
    this.#hasher ??= createHasher(this.#fn);
    this.#hasher.update(bytes);
    this.sizeBytes += bytes.length;
  }

  /** What follows it in the true bytes. If these begin otherwise, whoever has it must not go on with it: "corrupt". */
  async *rest(truth: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const hasher = createHasher(this.#fn);
    let left = this.sizeBytes;
    try {
      for await (const part of truth) {
        if (left > 0) hasher.update(part.subarray(0, left));
        const more = part.subarray(left);
        left -= part.length - more.length;
        if (left === 0 && more.length < part.length) this.#confirm(hasher.hex());
        if (more.length > 0) yield more;
      }
    } catch (error) {
      throw this.isWrong ? this.#wrong(error) : error;
    }
  }

  #confirm(hex: string): void {
    this.isWrong = hex !== this.#hasher?.hex();
    if (this.isWrong) throw this.#wrong();
  }

  #wrong(cause?: unknown): Fault {
    return new Fault("corrupt", "read blob", { digest: this.#digest, why: "a short cut gave other bytes" }, cause);
  }
}

export function withShortCuts(options: ShortCutOptions): BlobStore & { readonly isDead: boolean } {
  const { clock, far, shortCuts, leftAloneMs = 30_000 } = options;
  const backAtMs = new WeakMap<ReadOnly, number>();
  const failed = (shortCut: ReadOnly): void => void backAtMs.set(shortCut, clock.monotonicMs() + leftAloneMs);

  async function* whole(digest: Digest): AsyncGenerator<Uint8Array> {
    const told = new Beginning(digest);
    for (const shortCut of shortCuts(digest)) {
      if ((backAtMs.get(shortCut) ?? 0) > clock.monotonicMs()) continue;
      try {
        const parts = shortCut.read(digest);
        if (digestSizeBytes(digest) <= heldBytes) return yield await bytesOf(parts, heldBytes);
        for await (const part of parts) {
          told.add(part);
          yield part;
        }
        return;
      } catch (error) {
        if (!isFault(error)) throw error;
        if (error.code !== "not-found") failed(shortCut);
        told.isWrong = error.code === "corrupt"; // some of it; until the truth says otherwise
        if (told.sizeBytes > 0) break; // what was handed out cannot be taken back
      }
    }
    yield* told.sizeBytes > 0 ? told.rest(far.read(digest)) : far.read(digest);
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

/**
 * Sources nearer than the tier that may have a blob, such as a peer's disk. They are asked first and never trusted: the
 * tier decides whether the blob exists for this tenant (B3, B5), and bytes from a short cut are verified (B1). A short
 * cut that fails or lies is skipped for a while.
 */
import type { Clock } from "#base/clock.ts";
import { digestSizeBytes, type Digest, type DigestFunction } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { createHasher, partsOf, type Hasher } from "#blobs/hashing.ts";
import { canonical } from "#blobs/sha256.ts";
import { extend } from "#blobs/extend.ts";
import type { BlobStore } from "#blobs/store.ts";
import { packed } from "#blobs/zstd.ts";
import type { ReadOnly } from "./http.ts";
import { bytesOf } from "./s3/http-call.ts";

export type ShortCutOptions = {
  readonly clock: Clock;
  readonly far: BlobStore & { readonly isDead?: boolean };
  /** The sources to ask, in order. A function, because peers come and go. */
  readonly shortCuts: (digest: Digest) => readonly ReadOnly[];
  readonly leftAloneMs?: number;
};

/** Blobs up to this size are verified before any byte is handed out, so that another source can still be tried. */
const heldBytes = 4 * 1024 * 1024;

/** The part of a blob that was handed out before the blob was verified. */
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

  /**
   * Yields the bytes that follow it in the tier's copy. Throws "corrupt" if that copy begins with other bytes: then the
   * reader already has wrong ones.
   */
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
    return new Fault("corrupt", "read blob", { digest: this.#digest, why: "a short cut returned wrong bytes" }, cause);
  }
}

export function withShortCuts(options: ShortCutOptions): BlobStore & { readonly isDead: boolean } {
  const { clock, far, shortCuts, leftAloneMs = 30_000 } = options;
  const backAtMs = new WeakMap<ReadOnly, number>();
  const failed = (shortCut: ReadOnly): void => void backAtMs.set(shortCut, clock.monotonicMs() + leftAloneMs);

  async function* whole(digest: Digest): AsyncGenerator<Uint8Array> {
    const beginning = new Beginning(digest);
    for (const shortCut of shortCuts(digest)) {
      if ((backAtMs.get(shortCut) ?? 0) > clock.monotonicMs()) continue;
      try {
        const parts = shortCut.read(digest);
        if (digestSizeBytes(digest) <= heldBytes) return yield await bytesOf(parts, heldBytes);
        for await (const part of parts) {
          beginning.add(part);
          yield part;
        }
        return;
      } catch (error) {
        if (!isFault(error)) throw error;
        if (error.code !== "not-found") failed(shortCut);
        beginning.isWrong = error.code === "corrupt"; // assume so until the tier's bytes are compared
        if (beginning.sizeBytes > 0) break; // handed-out bytes cannot be taken back
      }
    }
    yield* beginning.sizeBytes > 0 ? beginning.rest(far.read(digest)) : far.read(digest);
  }

  const withReads = extend(far, {
    async *read(digest, range, form) {
      const name = canonical(digest);
      if (range && (range.offset > 0 || range.length !== undefined)) return yield* far.read(name, range, form);
      if ((await far.missing([name])).length > 0) throw new Fault("not-found", "read blob", { digest: name });
      yield* form === "zstd" ? packed(whole(name)) : whole(name);
    },
  });
  return {
    ...withReads,
    get isDead() {
      return far.isDead === true;
    },
  };
}

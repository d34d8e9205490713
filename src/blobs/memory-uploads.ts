import type { Clock } from "#base/clock.ts";
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { canonical } from "./sha256.ts";
import type { BlobStore, Form } from "./store.ts";
import type { Upload, UploadKey, Uploads } from "./uploads.ts";
import { ZstdUnpacker } from "./zstd.ts";

export type MemoryUploadsOptions = {
  readonly clock: Clock;
  /** Where finished ones go. */
  readonly blobs: BlobStore;
  /** Throws "exhausted" when there is no room for so much more. */
  readonly checkRoom?: (bytes: number) => void;
  /** How long what came is kept after a connection broke. */
  readonly keptForMs?: number;
  /** Together, begun and not finished; when it is more, the one that was left alone longest is forgotten. */
  readonly keptBytesMax?: number;
};

type Partial = {
  parts: Uint8Array[];
  sizeBytes: number;
  /** Who writes: whoever opened it last. */
  writer: object | undefined;
  touchedMs: number;
};

const keptForMsDefault = 10 * 60_000;
const keptBytesMaxDefault = 1024 * 1024 * 1024;

/** Uploads under way, in memory (B6). Gone with the process, so only for stores that are, too. */
export function createMemoryUploads(options: MemoryUploadsOptions): Uploads {
  const { clock, blobs, checkRoom } = options;
  const partials = new Map<string, Partial>();
  const forget = (): void => {
    const { keptForMs = keptForMsDefault, keptBytesMax = keptBytesMaxDefault } = options;
    let bytes = 0;
    for (const { sizeBytes } of partials.values()) bytes += sizeBytes;
    // Touched ones are put in again at the young end, so the first are the oldest.
    for (const [name, { sizeBytes, touchedMs, writer }] of partials) {
      if (writer || (bytes <= keptBytesMax && clock.monotonicMs() - touchedMs < keptForMs)) continue;
      partials.delete(name);
      bytes -= sizeBytes;
    }
  };

  return {
    async committed(key) {
      forget();
      const { digest, name } = named(key);
      if ((await blobs.missing([digest])).length === 0) return { sizeBytes: digestSizeBytes(digest), complete: true };
      return { sizeBytes: partials.get(name)?.sizeBytes ?? 0, complete: false };
    },
    async open(key, offset, form = "plain") {
      forget();
      const { digest, name } = named(key);
      const partial = partials.get(name) ?? { parts: [], sizeBytes: 0, writer: undefined, touchedMs: 0 };
      if (!(offset >= 0 && offset <= partial.sizeBytes))
        throw new Fault("invalid", "go on with upload", { digest, offset, committed: partial.sizeBytes });
      checkRoom?.(digestSizeBytes(digest) - offset);
      cut(partial, offset);
      partials.delete(name);
      partials.set(name, partial);
      const keep = (): void => void (partial.touchedMs = clock.monotonicMs());
      const drop = (): void => void partials.delete(name);
      return new MemoryUpload({ partial, digest, form, blobs, keep, drop });
    },
  };
}

function named({ uuid, digest }: UploadKey): { readonly digest: Digest; readonly name: string } {
  const name = canonical(digest);
  return { digest: name, name: `${uuid}/${name}` };
}

function cut(partial: Partial, offset: number): void {
  if (offset === partial.sizeBytes) return;
  partial.parts = [Buffer.concat(partial.parts).subarray(0, offset)];
  partial.sizeBytes = offset;
}

type UploadParts = {
  readonly partial: Partial;
  readonly digest: Digest;
  readonly form: Form;
  readonly blobs: BlobStore;
  readonly keep: () => void;
  readonly drop: () => void;
};

class MemoryUpload implements Upload {
  readonly #own: UploadParts;
  readonly #unpacker: ZstdUnpacker | undefined;

  constructor(own: UploadParts) {
    this.#own = own;
    own.partial.writer = this;
    if (own.form === "zstd") this.#unpacker = new ZstdUnpacker(digestSizeBytes(own.digest) - own.partial.sizeBytes);
    own.keep();
  }

  get sizeBytes(): number {
    return this.#own.partial.sizeBytes;
  }

  async append(bytes: Uint8Array): Promise<void> {
    this.#checkMine();
    if (!this.#unpacker) return this.#take([bytes]);
    const plain = await this.#orDrop(this.#unpacker.push(bytes));
    this.#checkMine();
    this.#take(plain);
  }

  async finish(): Promise<void> {
    this.#checkMine();
    const { partial, digest, blobs, drop } = this.#own;
    if (this.#unpacker) this.#take(await this.#orDrop(this.#unpacker.end()));
    this.#checkMine();
    try {
      await blobs.write(digest, Buffer.concat(partial.parts));
    } finally {
      drop();
      this.#leave();
    }
  }

  async suspend(): Promise<void> {
    if (this.#own.partial.writer !== this) return;
    this.#own.keep();
    this.#leave();
  }

  #take(parts: readonly Uint8Array[]): void {
    const { partial, digest, drop, keep } = this.#own;
    for (const part of parts) {
      if (partial.sizeBytes + part.length > digestSizeBytes(digest)) {
        drop();
        this.#leave();
        throw new Fault("invalid", "write blob", { digest, why: "more bytes than the digest says" });
      }
      partial.parts.push(Uint8Array.from(part));
      partial.sizeBytes += part.length;
    }
    keep();
  }

  async #orDrop<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (this.#own.partial.writer === this) this.#own.drop();
      this.#leave();
      throw error;
    }
  }

  #leave(): void {
    this.#unpacker?.close();
    if (this.#own.partial.writer === this) this.#own.partial.writer = undefined;
  }

  #checkMine(): void {
    if (this.#own.partial.writer === this) return;
    throw new Fault("stale", "write blob", {
      digest: this.#own.digest,
      why: "another connection took the upload over",
    });
  }
}

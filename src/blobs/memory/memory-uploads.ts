import type { Clock } from "#base/clock.ts";
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { canonical } from "#blobs/sha256.ts";
import type { BlobStore, Form } from "#blobs/store.ts";
import { beyondLimit, UploadLedger, uploadSharesDefault, type UploadOwner } from "#blobs/upload-limits.ts";
import type { Upload, UploadKey, Uploads } from "#blobs/uploads.ts";
import { ZstdUnpacker } from "#blobs/zstd.ts";

export type MemoryUploadsOptions = {
  readonly clock: Clock;
  /** The size that the shares of tenants and callers refer to. */
  readonly storeBytes: number;
  /** Throws "exhausted" if so many bytes could never fit. */
  readonly checkSpace?: (bytes: number) => void;
  /** How long an upload is kept after its connection broke. */
  readonly keptForMs?: number;
};

type Partial = {
  readonly owner: UploadOwner;
  parts: Uint8Array[];
  sizeBytes: number;
  /** The caller that opened the upload last; earlier ones are refused. */
  writer: object | undefined;
  touchedMs: number;
};

const keptForMsDefault = 10 * 60_000;

/** Makes the uploads of one tenant; finished ones are written to `blobs`. */
export type MemoryUploads = (tenant: string, blobs: BlobStore) => Uploads;

/** Uploads in progress, in memory (B6). Lost with the process, so only for stores that are lost too. */
export function createMemoryUploads(options: MemoryUploadsOptions): MemoryUploads {
  const { clock, storeBytes, checkSpace, keptForMs = keptForMsDefault } = options;
  const ledger = new UploadLedger(uploadSharesDefault, storeBytes);
  const partials = new Map<string, Partial>();
  const drop = (name: string, partial: Partial): void => {
    if (partials.get(name) !== partial) return;
    partials.delete(name);
    ledger.add(partial.owner, -partial.sizeBytes, -1);
  };
  const forgetOld = (): void => {
    for (const [name, partial] of partials)
      if (!partial.writer && clock.monotonicMs() - partial.touchedMs >= keptForMs) drop(name, partial);
  };
  const begin = (name: string, sizeBytes: number, owner: UploadOwner): Partial => {
    const never = ledger.excessOfWhole(owner, sizeBytes);
    if (never) throw beyondLimit(never);
    const excess = ledger.excess(owner, "count", 1);
    if (excess) throw beyondLimit(excess, keptForMs);
    const partial = { owner, parts: [], sizeBytes: 0, writer: undefined, touchedMs: clock.monotonicMs() };
    partials.set(name, partial);
    ledger.add(owner, 0, 1);
    return partial;
  };

  return (tenant, blobs) => ({
    async committed(key) {
      forgetOld();
      const { digest, name } = named(tenant, key);
      if ((await blobs.missing([digest])).length === 0) return { sizeBytes: digestSizeBytes(digest), complete: true };
      return { sizeBytes: partials.get(name)?.sizeBytes ?? 0, complete: false };
    },
    async open(key, offset, { form = "plain", caller } = {}) {
      forgetOld();
      const { digest, name } = named(tenant, key);
      const keptBytes = partials.get(name)?.sizeBytes ?? 0;
      if (!(offset >= 0 && offset <= keptBytes))
        throw new Fault("invalid", "resume upload", { digest, offset, committed: keptBytes });
      checkSpace?.(digestSizeBytes(digest) - offset);
      const partial = partials.get(name) ?? begin(name, digestSizeBytes(digest), { tenant, caller });
      ledger.add(partial.owner, offset - partial.sizeBytes, 0);
      cut(partial, offset);
      const take = (bytes: number): void => {
        const excess = ledger.excess(partial.owner, "bytes", bytes);
        if (excess) throw beyondLimit(excess, keptForMs);
        ledger.add(partial.owner, bytes, 0);
        partial.touchedMs = clock.monotonicMs();
      };
      return new MemoryUpload({ partial, digest, form, blobs, take, drop: () => drop(name, partial) });
    },
  });
}

function named(tenant: string, { uuid, digest }: UploadKey): { readonly digest: Digest; readonly name: string } {
  const name = canonical(digest);
  return { digest: name, name: JSON.stringify([tenant, uuid, name]) };
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
  /** Reserves so many more bytes; throws "exhausted" beyond the limit. */
  readonly take: (bytes: number) => void;
  readonly drop: () => void;
};

class MemoryUpload implements Upload {
  readonly #own: UploadParts;
  readonly #unpacker: ZstdUnpacker | undefined;

  constructor(own: UploadParts) {
    this.#own = own;
    own.partial.writer = this;
    if (own.form === "zstd") this.#unpacker = new ZstdUnpacker(digestSizeBytes(own.digest) - own.partial.sizeBytes);
    own.take(0);
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
    if (this.#own.partial.sizeBytes === 0) this.#own.drop(); // nothing worth resuming
    else this.#own.take(0);
    this.#leave();
  }

  #take(parts: readonly Uint8Array[]): void {
    const { partial, digest, drop, take } = this.#own;
    for (const part of parts) {
      if (partial.sizeBytes + part.length > digestSizeBytes(digest)) {
        drop();
        this.#leave();
        throw new Fault("invalid", "write blob", { digest, why: "more bytes than the digest says" });
      }
      take(part.length);
      partial.parts.push(Uint8Array.from(part));
      partial.sizeBytes += part.length;
    }
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

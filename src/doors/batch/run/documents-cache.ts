/** Documents of jobs as they are read from the store: all tasks of a stage ask for the same one. */
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import {
  engineName,
  type CommitDocument,
  type Manifest,
  type PlanDocument,
  type StageDocument,
} from "#doors/batch/documents.ts";

export type ReadBy = { readonly tenant: string; readonly blobs: BlobStore };

const keptMax = 64;
const keptBytesMax = 64 * 1024 * 1024;
const documentBytesMax = 64 * 1024 * 1024;

/** Remembers the last ones, by tenant: what one may see, another may not. */
export class Documents {
  readonly #kept = new Map<string, { readonly document: unknown; readonly bytes: number }>();
  #bytes = 0;

  async plan(digest: Digest, by: ReadBy): Promise<PlanDocument> {
    return checked(await this.#read<PlanDocument>(digest, by));
  }

  async stage(digest: Digest, by: ReadBy): Promise<StageDocument> {
    return checked(await this.#read<StageDocument>(digest, by));
  }

  async commit(digest: Digest, by: ReadBy): Promise<CommitDocument> {
    return checked(await this.#read<CommitDocument>(digest, by));
  }

  manifest(digest: Digest, by: ReadBy): Promise<Manifest> {
    return this.#read<Manifest>(digest, by);
  }

  async #read<T>(digest: Digest, { tenant, blobs }: ReadBy): Promise<T> {
    const at = `${tenant}\0${digest}`;
    const known = this.#kept.get(at);
    if (known) {
      this.#kept.delete(at);
      this.#kept.set(at, known);
      return known.document as T;
    }
    const bytes = digestSizeBytes(digest);
    if (!(bytes <= documentBytesMax)) throw new Fault("invalid", "read document", { digest: digest.slice(0, 150) });
    const document = JSON.parse(Buffer.from(await wholeBlob(blobs, digest)).toString("utf8")) as T;
    this.#keep(at, document, bytes);
    return document;
  }

  #keep(at: string, document: unknown, bytes: number): void {
    if (this.#kept.has(at) || bytes > keptBytesMax) return;
    this.#kept.set(at, { document, bytes });
    this.#bytes += bytes;
    for (const [oldest, one] of this.#kept) {
      if (this.#kept.size <= keptMax && this.#bytes <= keptBytesMax) return;
      this.#kept.delete(oldest);
      this.#bytes -= one.bytes;
    }
  }
}

/** Another engine would hash and order otherwise. */
function checked<T extends { readonly engine: string }>(document: T): T {
  if (document.engine === engineName) return document;
  throw new Fault("invalid", "read document", { engine: document.engine, why: `this node has ${engineName}` });
}

/** Recorded builds, read from the store: every stage of a large build reads it. */
import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { RecordedBuild, type Build } from "#wire/generated/millrace/build/v1/builds.ts";
import { decode } from "#wire/message.ts";
import { buildLimits } from "./limits.ts";

export type Recorded = RecordedBuild & { readonly build: Build };

const keptMax = 8;
const keptBytesMax = 64 * 1024 * 1024;

/** Caches the last ones, by tenant: tenants must not see each other's. */
export class RecordedBuilds {
  readonly #kept = new Map<string, Recorded>();
  #bytes = 0;

  /** Throws Fault "not-found" if it is no longer kept. */
  async read(tenant: string, digest: Digest, blobs: BlobStore): Promise<Recorded> {
    const at = `${tenant}\0${digest}`;
    const known = this.#kept.get(at);
    if (known) {
      this.#kept.delete(at);
      this.#kept.set(at, known);
      return known;
    }
    const recorded = await read(digest, blobs);
    this.#keep(at, recorded, digestSizeBytes(digest));
    return recorded;
  }

  #keep(at: string, recorded: Recorded, bytes: number): void {
    if (this.#kept.has(at) || bytes > keptBytesMax) return;
    this.#kept.set(at, recorded);
    this.#bytes += bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= keptMax && this.#bytes <= keptBytesMax) return;
      this.#kept.delete(oldest);
      this.#bytes -= digestSizeBytes(oldest.slice(oldest.indexOf("\0") + 1));
    }
  }
}

async function read(digest: Digest, blobs: BlobStore): Promise<Recorded> {
  if (!(digestSizeBytes(digest) <= 2 * buildLimits.buildBytesMax))
    throw new Fault("not-found", "read build", { digest: digest.slice(0, 150) });
  // A copy: it is cached, and the bytes may be the store's own memory.
  const bytes = Uint8Array.from(await wholeBlob(blobs, digest));
  const { build, ...recorded } = decode(RecordedBuild, bytes, { depthMax: 8, itemsMax: 10_000_000 });
  if (!build) throw new Fault("corrupt", "read build", { digest, why: "there is no build in it" });
  return { ...recorded, build };
}

/** The blob store as the nodes reach it, with a record of every pin in world time (K3). */
import type { Digest } from "#base/digest.ts";
import type { MemoryBlobs } from "#blobs/memory/memory.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Life } from "./machine.ts";
import type { World } from "./world.ts";

export class Pins {
  readonly #world: World;
  readonly #until = new Map<Digest, number>();
  readonly #names = new Set<Digest>();
  #blobs: MemoryBlobs | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  set store(blobs: MemoryBlobs) {
    this.#blobs = blobs;
  }

  /** Until when, in world time, the blob is known to be pinned. */
  until(digest: Digest): number {
    return this.#until.get(digest) ?? Number.NEGATIVE_INFINITY;
  }

  get known(): readonly Digest[] {
    return [...this.#names];
  }

  /** Reads the whole blob at once, from outside the world. */
  async read(digest: Digest): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for await (const part of this.#blobs?.read(digest) ?? []) parts.push(part);
    return Buffer.concat(parts);
  }

  /** The same at once, for checkers. */
  bytes(digest: Digest): Uint8Array | undefined {
    return this.#blobs?.prompt?.bytes(digest);
  }

  evict(digest: Digest): boolean {
    const gone = this.#blobs?.evict(digest) ?? false;
    if (gone) this.#names.delete(digest);
    return gone;
  }

  /** One machine's connection to the store, with its latency. */
  connect(life: Life, latencyMs: () => number): BlobStore {
    const store = this.#blobs;
    if (!store) throw new Error("no blob store");
    const travel = () => life.clock.sleep(latencyMs());
    return {
      async missing(digests) {
        await travel();
        return store.missing(digests);
      },
      async *read(digest, range) {
        await travel();
        yield* store.read(digest, range);
      },
      write: async (digest, bytes) => {
        await travel();
        await store.write(digest, bytes);
        this.#names.add(digest);
      },
      pin: async (digests, forMs) => {
        await travel();
        const pin = await store.pin(digests, forMs);
        if (!("missing" in pin))
          for (const digest of digests)
            this.#until.set(digest, Math.max(this.until(digest), this.#world.nowMs + forMs));
        await travel();
        return pin;
      },
    };
  }
}

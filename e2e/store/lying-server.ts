/** A server of the Remote Execution API that claims to have everything, and sends wrong bytes. */
import { startBuildEdge } from "#app/testing/build-edge.ts";
import { systemClock as clock } from "#door/system-clock.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { extend } from "#blobs/extend.ts";
import type { BlobStore, Store } from "#blobs/store.ts";

export type Lie = "none" | "other bytes" | "cut short" | "too long" | "has everything";

export class LyingServer implements AsyncDisposable {
  readonly address: string;
  readonly #stop: () => Promise<void>;
  lie: Lie = "none";

  private constructor(port: number, stop: () => Promise<void>) {
    this.address = `127.0.0.1:${port}`;
    this.#stop = stop;
  }

  static async start(): Promise<LyingServer> {
    const inner = createMemoryStore({ clock, sizeBytesMax: 256 * 1024 * 1024 });
    let self: LyingServer | undefined;
    const views = new Map<string, BlobStore>();
    const blobsOf = (tenant: string): BlobStore => {
      const view = views.get(tenant) ?? lying(inner.forTenant(tenant).blobs, () => self?.lie ?? "none");
      views.set(tenant, view);
      return view;
    };
    const store: Store = {
      ...inner,
      forTenant: (tenant) => ({ ...inner.forTenant(tenant), blobs: blobsOf(tenant) }),
    };
    const edge = await startBuildEdge(store);
    return (self = new LyingServer(edge.ports[0] ?? 0, () => edge.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
  }
}

/** `file` and `prompt` are removed, so that every answer passes here. */
function lying(blobs: BlobStore, lie: () => Lie): BlobStore {
  return extend(blobs, {
    file: undefined,
    prompt: undefined,
    missing: async (digests) => (lie() === "has everything" ? [] : await blobs.missing(digests)),
    async *read(digest, range, form) {
      const kind = lie();
      const parts: Uint8Array[] = [];
      for await (const part of blobs.read(digest, range, form)) parts.push(Uint8Array.from(part));
      yield told(Buffer.concat(parts), kind);
    },
  });
}

function told(bytes: Buffer, lie: Lie): Buffer {
  switch (lie) {
    case "other bytes":
      return Buffer.from(bytes.map((byte, at) => (at === bytes.length - 1 ? byte ^ 1 : byte)));
    case "cut short":
      return bytes.subarray(0, -1);
    case "too long":
      return Buffer.concat([bytes, Buffer.from("!")]);
    default:
      return bytes;
  }
}

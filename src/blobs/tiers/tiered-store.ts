/** A node's own store as a cache over the shared tier, for each tenant. */
import type { BlobStore, Store, TenantStore } from "#blobs/store.ts";
import type { Upload, UploadKey, Uploads } from "#blobs/uploads.ts";
import { readThrough, type WhenDead } from "./read-through.ts";
import { pushThrough } from "./write-through.ts";

export type TieredStoreOptions = {
  readonly near: Store;
  /** Each tenant has its own part of the tier, which no other tenant reads (B5). */
  readonly far: (tenant: string) => BlobStore & { readonly isDead?: boolean };
  readonly whenDead: WhenDead;
  readonly served?: (from: "near" | "far") => void;
  readonly close?: () => Promise<void>;
};

export function tieredStore({ near, far: farFor, whenDead, served, close }: TieredStoreOptions): Store {
  const views = new Map<string, TenantStore>();
  const viewOf = (tenant: string): TenantStore => {
    const local = near.forTenant(tenant);
    const far = farFor(tenant);
    return {
      near: local.blobs,
      blobs: readThrough({ near: local.blobs, far, whenDead, ...(served && { served }) }),
      uploads: uploadsThrough(local, far),
    };
  };
  return {
    forTenant(tenant) {
      let view = views.get(tenant);
      if (!view) views.set(tenant, (view = viewOf(tenant)));
      return view;
    },
    async close() {
      await near.close();
      await close?.();
    },
  };
}

/** Parts of an upload are stored in the near store; the upload is complete when the far store has the blob. */
function uploadsThrough({ blobs: near, uploads }: TenantStore, far: BlobStore): Uploads {
  return {
    async committed(key: UploadKey) {
      const kept = await uploads.committed(key);
      if (kept.complete) await pushThrough(near, far, key.digest);
      return kept;
    },
    async open(key, offset, how): Promise<Upload> {
      const upload = await uploads.open(key, offset, how);
      return {
        append: (bytes) => upload.append(bytes),
        get sizeBytes() {
          return upload.sizeBytes;
        },
        async finish() {
          await upload.finish();
          await pushThrough(near, far, key.digest);
        },
        suspend: () => upload.suspend(),
      };
    },
  };
}

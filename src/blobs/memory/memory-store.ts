import type { Clock } from "#base/clock.ts";
import { Shelf } from "./memory-shelf.ts";
import { blobsOf } from "./memory.ts";
import { createMemoryUploads } from "./memory-uploads.ts";
import type { Store, TenantStore } from "#blobs/store.ts";

export type MemoryStoreOptions = { readonly clock: Clock; readonly sizeBytesMax: number };

/** A store in memory, lost with the process: for tests, and for a cache that may be lost. */
export function createMemoryStore({ clock, sizeBytesMax }: MemoryStoreOptions): Store {
  const shelf = new Shelf(clock, sizeBytesMax);
  const views = new Map<string, TenantStore>();
  const checkSpace = (bytes: number): void => shelf.checkSpace(bytes);
  const uploadsOf = createMemoryUploads({ clock, storeBytes: sizeBytesMax, checkSpace });
  const viewOf = (tenant: string): TenantStore => {
    const blobs = blobsOf(shelf, tenant);
    return { blobs, uploads: uploadsOf(tenant, blobs) };
  };
  return {
    forTenant(tenant) {
      let view = views.get(tenant);
      if (!view) views.set(tenant, (view = viewOf(tenant)));
      return view;
    },
    async close() {},
  };
}

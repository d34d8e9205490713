/** Uploads in files, which can be resumed after a restart; a small one gets a file only when its connection breaks. */
import type { DigestParts } from "#base/digest.ts";
import { partsOf } from "#blobs/hashing.ts";
import type { Uploads } from "#blobs/uploads.ts";
import type { Core } from "#blobs/disk/core.ts";
import { isGood, type TenantView } from "#blobs/disk/disk-blobs.ts";
import { openUpload } from "./disk-upload.ts";
import { ownerOf, type PartialUploads } from "./partials.ts";
import { noEntry } from "#blobs/disk/table/table.ts";

export function createDiskUploads(core: Core, partials: PartialUploads, tenant: string, view: TenantView): Uploads {
  /** A damaged copy does not count: the bytes of the upload repair it. */
  const isThere = async (parts: DigestParts): Promise<boolean> => {
    const entry = core.findFor(parts, view.number());
    return entry !== noEntry && (await isGood(core, entry, parts));
  };
  return {
    async committed(key) {
      const parts = partsOf(key.digest);
      if (await isThere(parts)) return { sizeBytes: parts.sizeBytes, complete: true };
      return { sizeBytes: partials.keptBytes(partials.nameOf(tenant, key)), complete: false };
    },
    async open(key, offset, { form = "plain", caller } = {}) {
      const parts = partsOf(key.digest);
      const name = partials.nameOf(tenant, key);
      return await openUpload(core, partials, { name, owner: ownerOf(tenant, caller), parts, view, offset, form });
    },
  };
}

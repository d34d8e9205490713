/** The cache service, version 2, as `@actions/cache` calls it. */
import { z } from "zod";
import type { Caches, WholeEntry } from "./caches.ts";
import type { Signed } from "#doors/ci/services/signed-address.ts";
import { Int64, Text, twirpMethod, type TwirpMethod } from "#doors/ci/services/twirp.ts";

export type CacheTwirpPorts = {
  readonly caches: Caches;
  readonly sign: (origin: string, signed: Signed) => Promise<string>;
};

const Find = z.object({ key: Text, restore_keys: z.array(Text).max(100).optional(), version: Text });
const Create = z.object({ key: Text, version: Text });
const Finalize = z.object({ key: Text, version: Text, size_bytes: Int64 });

export const cacheDownload = (tenant: string, { id }: WholeEntry): Signed => ({
  does: "download",
  tenant,
  id: `cache.${id}`,
  fileName: "cache",
});

export function cacheMethods({ caches, sign }: CacheTwirpPorts): Readonly<Record<string, TwirpMethod>> {
  return {
    GetCacheEntryDownloadURL: twirpMethod(Find, async ({ job, origin }, { key, restore_keys: more = [], version }) => {
      const found = await caches.find(job, [key, ...more], version);
      if (!found) return { ok: false };
      const signed_download_url = await sign(origin, cacheDownload(job.tenant, found));
      return { ok: true, signed_download_url, matched_key: found.key };
    }),
    CreateCacheEntry: twirpMethod(Create, async ({ job, origin }, given) => {
      const begun = await caches.begin(job, given);
      if (!begun) return { ok: false, message: `a cache with the key ${given.key} exists already, or is being saved` };
      const { tenant, id } = begun;
      return { ok: true, signed_upload_url: await sign(origin, { does: "upload", tenant, id, fileName: "cache" }) };
    }),
    FinalizeCacheEntryUpload: twirpMethod(Finalize, async ({ job }, { size_bytes: sizeBytes, ...given }) => {
      const { id } = await caches.finalize(job, given, sizeBytes);
      return { ok: true, entry_id: String(id) };
    }),
  };
}

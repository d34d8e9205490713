/** The code of functions: a tenant's own, and for as long as a job needs it the nodes' as well. */
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import type { BatchJob } from "#doors/batch/plan.ts";

type Ports = { readonly blobs: BlobStore; readonly store: Pick<Store, "forTenant"> };

const moduleBytesMax = 64 * 1024 * 1024;

/** Code that the tenant has uploaded, for the tasks of the job wherever they run. */
export async function keepModules({ maps = [] }: BatchJob, tenant: string, ports: Ports): Promise<readonly Digest[]> {
  const modules = [...new Set(maps.map(({ function: { module } }) => module))];
  const { blobs } = ports.store.forTenant(tenant);
  for (const digest of modules) {
    const bytes = Number(digest.slice(digest.indexOf("/") + 1));
    if (bytes > moduleBytesMax)
      throw new Fault("invalid", "read function", { bytes, bytesMax: moduleBytesMax, why: "its module is too large" });
    const [missing] = await blobs.missing([digest]);
    if (missing !== undefined)
      throw new Fault("not-found", "read function", { module: digest, why: "upload its module first" });
    const [wanted] = await ports.blobs.missing([digest]);
    if (wanted !== undefined) await ports.blobs.write(digest, blobs.read(digest));
  }
  return modules;
}

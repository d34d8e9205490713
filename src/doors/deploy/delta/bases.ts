/** The older releases of a service that its machines are likely to have: the last three that mattered. */
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { GoalStore } from "#doors/deploy/fleet/goals.ts";
import { readWhole } from "#doors/deploy/fleet/whole.ts";
import { parseManifest, type Manifest } from "#doors/deploy/manifest/manifest.ts";
import type { Signed } from "#doors/deploy/signing/signing.ts";

export type OlderRelease = { readonly digest: Digest; readonly manifest: Manifest };

const basesMax = 3;

/** What runs well in the regions first, then what is being rolled out, then what those were made against. */
export async function basesOf(
  { goals, blobs }: { readonly goals: Pick<GoalStore, "head" | "stable">; readonly blobs: BlobStore },
  at: { readonly tenant: string; readonly service: string; readonly regions: readonly string[] },
): Promise<readonly OlderRelease[]> {
  const { tenant, service } = at;
  const [stable, heads, before] = [new Set<Digest>(), new Set<Digest>(), new Set<Digest>()];
  for (const region of at.regions) {
    const known = await goals.stable({ tenant, service, region });
    if (known) stable.add(known.manifest);
    if (known && known.before !== null) before.add(known.before);
    const head = await goals.head({ tenant, service, region });
    if (head && head.goal.manifest !== null) heads.add(head.goal.manifest);
  }
  const found: OlderRelease[] = [];
  const wanted = new Set([...stable, ...heads, ...before]);
  for (const digest of wanted) {
    if (found.length >= basesMax) break;
    const manifest = await manifestOf(blobs, digest);
    if (!manifest) continue;
    found.push({ digest, manifest });
    for (const { base } of manifest.alternatives ?? []) if (base !== null) wanted.add(base);
  }
  return found;
}

/** Undefined where it is no longer kept. */
async function manifestOf(blobs: BlobStore, digest: Digest): Promise<Manifest | undefined> {
  if ((await blobs.missing([digest])).length > 0) return undefined;
  return parseManifest((JSON.parse(await readWhole(blobs, digest)) as Signed).body);
}

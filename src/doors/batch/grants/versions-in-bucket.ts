/**
 * A folder of a bucket whose content changes all at once: its files have names of their own for each version, and the
 * object `_SUCCESS` says which of them count. It is replaced on the condition that no other writer has replaced it.
 *
 * BO3 Who reads through the manifest finds a whole version or none. The same version may be committed any number of
 *     times.
 */
import { Fault } from "#base/fault.ts";
import { z } from "zod";
import { bytesOf } from "#blobs/tiers/s3/http-call.ts";
import type { S3Client } from "#blobs/tiers/s3/s3-client.ts";
import { manifestName } from "#doors/batch/output/versions.ts";

const Manifest = z.looseObject({
  version: z.string().regex(/^[0-9a-f]{24}$/),
  files: z.array(z.looseObject({ path: z.string() })).max(1_000_000),
  /** Files of the version before it, which readers may still be in. */
  before: z.object({ version: z.string(), files: z.array(z.string()) }).optional(),
});
export type BucketManifest = z.output<typeof Manifest>;

const manifestBytesMax = 64 * 1024 * 1024;

/** Undefined where there is none, or one that is not ours. */
export async function manifestAt(
  client: S3Client,
  folder: string,
): Promise<{ readonly manifest: BucketManifest; readonly etag: string } | "foreign" | undefined> {
  const found = await client.get(`${folder}${manifestName}`);
  if (!found) return undefined;
  if (found.sizeBytes > manifestBytesMax) return "foreign";
  const text = (await bytesOf(found.body, manifestBytesMax)).toString("utf8");
  const parsed = Manifest.safeParse(parsedOr(text));
  return parsed.success ? { manifest: parsed.data, etag: found.etag } : "foreign";
}

function parsedOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const manifestsMax = 1_000;

/** Of the keys that were found, those that count: in folders of versions, only what the manifest names. */
export async function versionFiles(
  client: S3Client,
  { all, above }: { readonly all: readonly string[]; readonly above: readonly string[] },
  found: readonly string[],
): Promise<readonly string[]> {
  const below = all.filter((key) => key.endsWith(`/${manifestName}`)).map((key) => key.slice(0, -manifestName.length));
  const folders = [...new Set([...above, ...below])];
  if (folders.length > manifestsMax) throw new Fault("exhausted", "find files", { manifestsMax });
  let counted = found;
  for (const folder of folders) {
    const at = await manifestAt(client, folder);
    if (!at || at === "foreign") continue;
    const named = new Set(at.manifest.files.map(({ path }) => `${folder}${path}`));
    counted = counted.filter((key) => !key.startsWith(folder) || named.has(key));
  }
  return counted;
}

const triesMax = 3;

/** Makes the files, which are there already, the version that counts; what is older than the one before is removed. */
export async function commitInBucket(
  client: S3Client,
  folder: string,
  next: BucketManifest,
  mayCommit: () => Promise<void>,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const at = await manifestAt(client, folder);
    if (at === "foreign") throw foreign(folder);
    if (at?.manifest.version === next.version) return;
    const before = at && { version: at.manifest.version, files: at.manifest.files.map(({ path }) => path) };
    const text = Buffer.from(`${JSON.stringify({ ...next, ...(before && { before }) }, null, 1)}\n`);
    await mayCommit();
    const condition = at ? { ifMatch: at.etag } : { ifNoneMatch: "*" as const };
    const answer = await client.put(`${folder}${manifestName}`, text, condition);
    if (answer !== "conflict") {
      const kept = new Set([...next.files.map(({ path }) => path), ...(before?.files ?? [])]);
      for (const path of at?.manifest.before?.files ?? []) if (!kept.has(path)) await client.remove(`${folder}${path}`);
      return;
    }
    if (tries >= triesMax)
      throw new Fault("unavailable", "write result", { folder, why: "others write there as well" });
  }
}

const ownFile = /(?:^|\/)part-[0-9a-f]{12}-[^/]*\.parquet$/;

/** A new folder is empty, but for what an attempt that was killed has left. */
export async function refuseForeign(client: S3Client, folder: string): Promise<void> {
  const at = await manifestAt(client, folder);
  if (at === "foreign") throw foreign(folder);
  if (at) return;
  const { keys } = await client.list(folder, undefined, 100);
  if (keys.some((key) => !ownFile.test(key))) throw foreign(folder);
}

const foreign = (folder: string): Fault =>
  new Fault("invalid", "write result", {
    folder,
    why: "something else is there; name a folder that is new, empty or was written by a query",
  });

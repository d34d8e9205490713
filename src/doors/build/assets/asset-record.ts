/** Known assets: who pushed or fetched what, under which address. Kept in the index, as names of blobs. */
import { createHash } from "node:crypto";
import type { Digest, DigestFunction } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { EntryKey } from "#blobs/action-index.ts";
import { digestOf } from "#blobs/hashing.ts";
import { wholeBlob } from "#blobs/whole-blob.ts";
import { PushBlobRequest, type Qualifier } from "#wire/generated/build/bazel/remote/asset/v1/remote_asset.ts";
import type { Timestamp } from "#wire/generated/google/protobuf/timestamp.ts";
import { decode, encode } from "#wire/message.ts";
import { directoryClosure } from "#doors/build/cache/closure.ts";
import { digestOfWire, isEmpty, numberOf, wireOf } from "#doors/build/digests.ts";
import { storeOf, type BuildCall, type BuildPorts } from "#doors/build/call.ts";

export type AssetKind = "blob" | "directory";

export type AssetName = {
  readonly kind: AssetKind;
  readonly instance: string;
  readonly fn: DigestFunction;
  readonly uri: string;
  /** The qualifiers that identify a different asset. */
  readonly identity: readonly Qualifier[];
};

export type Asset = {
  readonly digest: Digest;
  readonly references: readonly Digest[];
  readonly directories: readonly Digest[];
  /** Not valid afterwards. */
  readonly expiresAtMs?: number;
};

export type FoundAsset = Asset & { readonly atMs: number };

/** Stored as a push message, for every kind of asset. */
export async function keepAsset(
  ports: BuildPorts,
  call: BuildCall,
  names: readonly AssetName[],
  { digest, references, directories, expiresAtMs }: Asset,
): Promise<void> {
  const fn = names[0]?.fn ?? "sha256";
  const bytes = encode(PushBlobRequest, {
    instanceName: "",
    uris: [],
    qualifiers: [],
    expireAt: expiresAtMs === undefined ? undefined : timestampOf(expiresAtMs),
    blobDigest: wireOf(digest),
    referencesBlobs: references.map(wireOf),
    referencesDirectories: directories.map(wireOf),
    digestFunction: numberOf(fn),
  });
  const record = digestOf(bytes);
  await storeOf(ports, call).blobs.write(record, bytes);
  const entry = { digest: record, principal: call.caller.principal, atMs: ports.clock.wallMs() };
  for (const name of names)
    await ports.index.put(keyOf(call, name), { ...entry, notes: { uri: name.uri.slice(0, 2_000) } });
}

/** Undefined also when it has expired, or when part of it is no longer in the store. */
export async function findAsset(ports: BuildPorts, call: BuildCall, name: AssetName): Promise<FoundAsset | undefined> {
  const entry = await ports.index.get(keyOf(call, name));
  if (!entry) return undefined;
  const { blobs } = storeOf(ports, call);
  try {
    const record = decode(PushBlobRequest, await wholeBlob(blobs, entry.digest));
    const expiresAtMs = record.expireAt && millisOf(record.expireAt);
    if (expiresAtMs !== undefined && expiresAtMs <= ports.clock.wallMs()) return undefined;
    const read = (wire: (typeof record.referencesBlobs)[number] | undefined) => digestOfWire(wire, name.fn, "a digest");
    const asset: Asset = {
      digest: read(record.blobDigest),
      references: record.referencesBlobs.map(read),
      directories: record.referencesDirectories.map(read),
      ...(expiresAtMs !== undefined && { expiresAtMs }),
    };
    const missing = await missingOf(ports, call, asset, name);
    return missing.length === 0 ? { ...asset, atMs: entry.atMs } : undefined;
  } catch (error) {
    if (isFault(error, "not-found")) return undefined;
    throw error;
  }
}

/** The missing blobs of the asset; the others count as used. */
export async function missingOf(
  ports: BuildPorts,
  call: BuildCall,
  { digest, references, directories }: Asset,
  { kind, fn }: Pick<AssetName, "kind" | "fn">,
): Promise<readonly Digest[]> {
  const { blobs } = storeOf(ports, call);
  const wanted = new Set([digest, ...references, ...directories]);
  for (const top of kind === "directory" ? [digest, ...directories] : directories) {
    if ((await blobs.missing(isEmpty(top) ? [] : [top])).length > 0) continue; // reported below
    for (const one of await directoryClosure(top, fn, blobs)) wanted.add(one);
  }
  return await blobs.missing([...wanted].filter((one) => !isEmpty(one)));
}

/** Addresses may be longer than names in the index, so they are hashed. */
function keyOf({ caller }: BuildCall, { kind, instance, fn, uri, identity }: AssetName): EntryKey {
  const all = JSON.stringify([uri, ...identity.map(({ name, value }) => [name, value])]);
  const space = `asset/${kind}/${fn}${instance === "" ? "" : `/${instance}`}`;
  return { tenant: caller.tenant, space, name: createHash("sha256").update(all).digest("hex") };
}

export const millisOf = ({ seconds, nanos }: Timestamp): number => seconds * 1_000 + Math.floor(nanos / 1_000_000);

export const timestampOf = (ms: number): Timestamp => ({
  seconds: Math.floor(ms / 1_000),
  nanos: Math.floor(ms - Math.floor(ms / 1_000) * 1_000) * 1_000_000,
});

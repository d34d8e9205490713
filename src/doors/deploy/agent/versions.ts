/**
 * The versions of a service on this machine's disk: which are complete, and which may go.
 *
 * VS1 A version that runs, that was good last, or that the goal names is never removed; nor is what is being staged.
 * VS2 All versions of a service together stay below its quota. A version that does not fit beside those of VS1 is not
 *     staged, and what runs goes on.
 */
import { readdir, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { Fault } from "#base/fault.ts";
import { ignoreMissing } from "#base/ignore-missing.ts";
import { stagedHashes, sizeOf, versionFolder } from "./stage.ts";

export type Keep = {
  readonly countMax: number;
  readonly bytesMax: number;
  /** Manifests of versions that stay (VS1). */
  readonly inUse: readonly string[];
};

const staging = ".staging";

/** Those of the manifests whose folders are complete. */
export async function stagedOf(folder: string, manifests: readonly string[]): Promise<ReadonlySet<string>> {
  const names = await stagedHashes(folder);
  return new Set(manifests.filter((manifest) => names.has(nameOf(folder, manifest))));
}

/** Removes the oldest versions beyond the number to keep, and all that was begun and is no longer wanted. */
export async function collect(folder: string, keep: Keep): Promise<void> {
  const kept = new Set(keep.inUse.map((manifest) => nameOf(folder, manifest)));
  const old = (await versionsIn(folder)).slice(keep.countMax);
  for (const { name } of old) if (!kept.has(name)) await remove(folder, name);
  for (const name of (await readdir(folder).catch(ignoreMissing)) ?? [])
    if (name.endsWith(staging) && !kept.has(name.slice(0, -staging.length)))
      await rm(join(folder, name), { recursive: true, force: true });
}

/** Makes room within the quota for a version of this size (VS2). */
export async function makeRoom(folder: string, neededBytes: number, { inUse, bytesMax }: Keep): Promise<void> {
  const kept = new Set(inUse.map((manifest) => nameOf(folder, manifest)));
  const versions = await Promise.all(
    (await versionsIn(folder)).map(async ({ name }) => ({ name, bytes: await sizeOf(join(folder, name)) })),
  );
  let usedBytes = versions.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { name, bytes } of versions.toReversed()) {
    if (usedBytes + neededBytes <= bytesMax) return;
    if (kept.has(name)) continue;
    await remove(folder, name);
    usedBytes -= bytes;
  }
  if (usedBytes + neededBytes > bytesMax)
    throw new Fault("exhausted", "stage release", { usedBytes, neededBytes, quotaBytes: bytesMax });
}

/** The newest first. */
async function versionsIn(folder: string): Promise<readonly { readonly name: string; readonly atMs: number }[]> {
  const names = [...(await stagedHashes(folder))];
  const aged = await Promise.all(names.map(async (name) => ({ name, atMs: (await stat(join(folder, name))).mtimeMs })));
  return aged.toSorted((a, b) => b.atMs - a.atMs);
}

async function remove(folder: string, name: string): Promise<void> {
  await rm(join(folder, `${name}.json`), { force: true });
  await rm(join(folder, name), { recursive: true, force: true });
}

const nameOf = (folder: string, manifest: string): string => basename(versionFolder(folder, manifest));

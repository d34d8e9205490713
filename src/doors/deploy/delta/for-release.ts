/** The alternatives of a release that is being sealed. */
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { DoorPorts } from "#door/ports.ts";
import type { GoalStore } from "#doors/deploy/fleet/goals.ts";
import { manifestText, type Manifest } from "#doors/deploy/manifest/manifest.ts";
import { basesOf, type OlderRelease } from "./bases.ts";
import { makeAlternatives, type Made } from "./make-alternatives.ts";

export type DeltaPorts = {
  readonly goals: Pick<GoalStore, "head" | "stable">;
  readonly blobs: BlobStore;
  readonly keptMs: number;
  readonly signal: AbortSignal;
  readonly warn: DoorPorts["warn"];
};

/** A release waits this long for its deltas: what they spare of its bytes must not cost more time than it spares. */
const makingMsMax = 2 * 60_000;

/** Undefined: there are none. */
export async function alternativesFor(
  manifest: Manifest,
  { tenant, regions }: { readonly tenant: string; readonly regions: readonly string[] },
  { goals, blobs, keptMs, signal, warn }: DeltaPorts,
): Promise<Made | undefined> {
  const { service } = manifest;
  const older = await basesOf({ goals, blobs }, { tenant, service, regions });
  const same = older.find((each) => isSame(each, manifest));
  // The same release again stays the same manifest, which is nothing to do for machines that run it.
  if (same) return same.manifest.alternatives && { alternatives: same.manifest.alternatives, digests: [] };
  const made = await makeAlternatives(manifest, older, {
    blobs,
    pin: async (digests: readonly Digest[]) => void (await blobs.pin(digests, keptMs)),
    signal,
    hurry: AbortSignal.timeout(makingMsMax),
    missed: (base, error) =>
      warn("deploy delta not made", { tenant, reason: `${service} against ${base ?? "nothing"}: ${String(error)}` }),
  });
  return made.alternatives.length > 0 ? made : undefined;
}

function isSame({ manifest: { alternatives: _, ...older } }: OlderRelease, fresh: Manifest): boolean {
  return manifestText(older) === manifestText(fresh);
}

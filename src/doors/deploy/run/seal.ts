/** Signs what a build made, as a release of one service: services that share a build differ in how they run it. */
import type { Store } from "#blobs/store.ts";
import type { RunContext, RunOutcome } from "#worker/runner.ts";
import type { DoorPorts } from "#door/ports.ts";
import { alternativesFor } from "#doors/deploy/delta/for-release.ts";
import { readWhole } from "#doors/deploy/fleet/whole.ts";
import type { GoalStore } from "#doors/deploy/fleet/goals.ts";
import { distinctSegments, manifestSizeBytes, manifestText, parseManifest } from "#doors/deploy/manifest/manifest.ts";
import { runSpecOf } from "#doors/deploy/manifest/run-spec.ts";
import type { BuildResult, Packed, SealSpec } from "#doors/deploy/plan.ts";
import { specWithService } from "#doors/deploy/service/stored.ts";
import type { Signer } from "#doors/deploy/signing/signing.ts";

export type SealPorts = {
  readonly store: Store;
  readonly goals: GoalStore;
  readonly signer: () => Promise<Signer>;
  readonly warn: DoorPorts["warn"];
};

export const keptMs = 30 * 24 * 3_600_000;

export const sealRunner =
  ({ store, goals, signer, warn }: SealPorts) =>
  async (context: RunContext): Promise<RunOutcome> => {
    const { service, sha, packed } = specWithService<SealSpec>(context.task.spec);
    const { tenant } = context.task;
    const { blobs } = store.forTenant(tenant);
    const { builder, ...content } = JSON.parse(await readWhole(blobs, packed)) as Packed;
    const named = { format: 1, service: service.service, sha, builder, run: runSpecOf(service) } as const;
    const { regions } = service.targets;
    const deltas = { goals, blobs, warn, keptMs, signal: context.signal };
    const made = await alternativesFor({ ...named, ...content }, { tenant, regions }, deltas);
    const text = manifestText({ ...named, ...content, ...(made && { alternatives: [...made.alternatives] }) });
    const manifest = parseManifest(text); // what agents would refuse must not be signed
    const digest = await goals.write(tenant, JSON.stringify((await signer()).sign("manifest", text)));
    const segments = distinctSegments(content);
    await blobs.pin(segments, keptMs);
    const result: BuildResult = { manifest: digest, sizeBytes: manifestSizeBytes(manifest) };
    return { kind: "done", payload: JSON.stringify(result), digests: [digest, ...segments, ...(made?.digests ?? [])] };
  };

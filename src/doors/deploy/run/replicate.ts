/**
 * Brings a release's bytes to a region before its first wave: the task runs on a node of that region, whose store has
 * read and verified every segment when it ends.
 */
import { createHash } from "node:crypto";
import { digestSizeBytes, parseDigest, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { BlobStore, Store } from "#blobs/store.ts";
import type { RunContext, RunOutcome } from "#worker/runner.ts";
import { readWhole } from "#doors/deploy/fleet/whole.ts";
import { parsePack } from "#doors/deploy/delta/pack.ts";
import { distinctSegments, parseManifest } from "#doors/deploy/manifest/manifest.ts";
import type { ReplicateResult, ReplicateSpec } from "#doors/deploy/plan.ts";
import type { Signed } from "#doors/deploy/signing/signing.ts";
import { keptMs } from "./seal.ts";

/** Segments that are read at once. */
const readsMax = 4;
const sayEveryBytes = 512 * 1024 * 1024;

/** Waits until so many bytes may come to this region. */
export type Pace = (context: RunContext, bytes: number) => Promise<void>;

export const replicateRunner =
  (store: Store, pace: Pace = () => Promise.resolve()) =>
  async (context: RunContext): Promise<RunOutcome> => {
    const { manifest, regions } = JSON.parse(context.task.spec) as ReplicateSpec;
    const { blobs } = store.forTenant(context.task.tenant);
    const signed = JSON.parse(await readWhole(blobs, manifest)) as Signed;
    const { files, alternatives = [] } = parseManifest(signed.body);
    const packs = alternatives.map(({ pack }) => pack);
    const packed: Digest[] = [];
    for (const pack of packs) packed.push(...parsePack(await readWhole(blobs, pack)).segments);
    const segments = [...distinctSegments({ files }), ...packs, ...new Set(packed)];
    await blobs.pin(segments, keptMs);
    const bytes = segments.reduce((sum, digest) => sum + digestSizeBytes(digest), 0);
    let [done, said] = [0, 0];
    const queue = segments.values();
    const reader = async (): Promise<void> => {
      for (const digest of queue) {
        context.signal.throwIfAborted();
        await verify(blobs, digest, async (bytes) => await pace(context, bytes));
        done += digestSizeBytes(digest);
        if (done - said < sayEveryBytes) continue;
        said = done;
        context.report({ step: 1, name: `${done} of ${bytes} bytes verified`, status: "progress" });
      }
    };
    await Promise.all(Array.from({ length: readsMax }, reader));
    const result: ReplicateResult & { readonly why: string } = {
      regions,
      segments: segments.length,
      bytes,
      why: `${segments.length} segments, ${bytes} bytes verified`,
    };
    return { kind: "done", payload: JSON.stringify(result), digests: [manifest, ...segments] };
  };

async function verify(blobs: BlobStore, digest: Digest, pace: (bytes: number) => Promise<void>): Promise<void> {
  const hashing = createHash("sha256");
  for await (const part of blobs.read(digest)) {
    await pace(part.length);
    hashing.update(part);
  }
  if (hashing.digest("hex") !== parseDigest(digest)?.hash)
    throw new Fault("corrupt", "replicate segment", { digest, why: "its bytes do not have this digest" });
}
